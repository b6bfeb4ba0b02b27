// SPDX-License-Identifier: Apache-2.0
// The fleet that the scenario declares, as configuration would.
#include <algorithm>
#include <set>
#include <string>

#include "sim/world.h"

namespace signalbox::sim {
namespace {

// Names of models in order; their ids are their places, from 1.
std::vector<std::string> models_of(const Scenario& scenario) {
  std::set<std::string> names;
  for (const EngineGroup& group : scenario.groups) names.insert(group.model);
  return {names.begin(), names.end()};
}

model::ModelId id_of(const std::vector<std::string>& models, const std::string& name) {
  const auto at = std::find(models.begin(), models.end(), name);
  return model::ModelId(static_cast<std::uint32_t>(at - models.begin() + 1));
}

}  // namespace

// One route to each model, and, with several, one that mixes them.
std::uint32_t World::routes() const {
  const auto models = static_cast<std::uint32_t>(models_of(scenario_).size());
  return models > 1 ? models + 1 : 1;
}

// What every engine of the scenario can hold.
std::int64_t World::context() const {
  std::int64_t least = 1 << 20;
  for (const EngineGroup& group : scenario_.groups) {
    least = std::min(least, group.spec.kv_tokens / 2);
  }
  return std::max(least, scenario_.load.answer.most + 64);
}

flow::Setup World::setup() const {
  return {scenario_.config, std::make_shared<model::Fleet>(fleet())};
}

model::Fleet World::fleet() const {
  model::Fleet fleet;
  const std::vector<std::string> models = models_of(scenario_);
  for (const std::string& name : models) {
    model::Model m;
    m.id = id_of(models, name);
    m.name = name;
    m.loras = {"adapter-1", "adapter-2"};
    fleet.models.push_back(m);
  }
  const model::ModelId nobodys(static_cast<std::uint32_t>(models.size() + 1));
  fleet.models.emplace_back().id = nobodys;
  fleet.models.back().name = "nobody's";
  for (std::size_t i = 0; i < scenario_.groups.size(); ++i) {
    const EngineGroup& group = scenario_.groups[i];
    model::Pool pool;
    pool.id = model::PoolId(static_cast<std::uint32_t>(i + 1));
    pool.name = "pool-" + std::to_string(i + 1);
    pool.model = id_of(models, group.model);
    // The core places whole requests as yet: it sees engines that prefill as engines that do all,
    // and leaves those that decode alone.
    pool.role = group.role == model::Role::Decode ? group.role : model::Role::Both;
    pool.accelerator = group.accelerator;
    pool.tensor_parallel = group.tensor_parallel;
    pool.precision = group.precision;
    pool.usd_per_hour = group.usd_per_hour / endpoints_of(group) * price_factor_;
    pool.concurrency_max =
        group.concurrency_max > 0 ? std::max(1, group.concurrency_max - limit_cut_) : 0;
    pool.dispatch = group.dispatch;
    if (!group.profile.empty()) fleet.models[pool.model.value() - 1].profile = group.profile;
    const auto reassigned = reassigned_.find(i);
    if (reassigned != reassigned_.end() && reassigned->second > 0) pool.model = nobodys;
    fleet.pools.push_back(pool);
  }
  for (const Host& host : hosts_) {
    if (!host.declared) continue;
    for (const model::EndpointId id : host.endpoints) {
      model::Endpoint endpoint;
      endpoint.id = id;
      endpoint.pool = model::PoolId(static_cast<std::uint32_t>(host.group + 1));
      // Engines that share an address are next to each other.
      const int shares = scenario_.groups[host.group].share_address;
      const auto beside = shares > 1 ? static_cast<std::uint32_t>(host.number % shares) : 0;
      endpoint.address = shares > 1
          ? "10.0.1." + std::to_string(host.number - beside) + ":8000"
          : "10.0.0." + std::to_string(host.endpoints.front().value()) + ":8000";
      endpoint.rank = shares > 1 ? static_cast<int>(beside) : seats_[id.value() - 1].rank;
      endpoint.serves = host.serves;
      endpoint.lists_loras = scenario_.groups[host.group].adapters_apart;
      if (endpoint.lists_loras) endpoint.loras = {"adapter-1"};
      if (endpoint.lists_loras && host.number % 2 == 1) endpoint.loras.push_back("adapter-2");
      fleet.endpoints.push_back(endpoint);
    }
  }
  for (int i = 1; i <= scenario_.load.tenants; ++i) {
    fleet.tenants.push_back({model::TenantId(static_cast<std::uint32_t>(i)),
                             "tenant-" + std::to_string(i), scenario_.load.tenant_cap});
  }
  if (scenario_.objective_told || scenario_.latency_weight != 1 ||
      scenario_.seconds_per_usd != 0) {
    model::Objective objective;
    objective.id = model::ObjectiveId(1);
    objective.name = "objective";
    if (scenario_.objective_told) {
      objective.ttft = scenario_.ttft_wanted;
      objective.e2e = scenario_.e2e_wanted;
    }
    objective.latency_weight = scenario_.latency_weight;
    objective.seconds_per_usd = scenario_.seconds_per_usd;
    fleet.objectives.push_back(objective);
  }
  for (std::uint32_t i = 1; i <= routes(); ++i) {
    model::Route route;
    route.id = model::RouteId(i);
    if (!fleet.objectives.empty()) route.objective = fleet.objectives[0].id;
    const bool mixes = i > models.size();
    route.name = mixes ? "any" : models[i - 1];
    for (const std::string& name : models) {
      const model::ModelId id = id_of(models, name);
      if (mixes || id.value() == i) route.targets.push_back({id, 1.0 + id.value()});
      else route.fallback.push_back(id);
    }
    fleet.routes.push_back(route);
  }
  return fleet;
}

}  // namespace signalbox::sim
