// SPDX-License-Identifier: Apache-2.0
// A new configuration or fleet: what is new joins, what is gone leaves, what stays keeps its state.
#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "core/flow/core.h"

namespace signalbox::flow {
namespace {

// FNV-1a: stable over runs, builds and machines.
std::uint64_t hash_text(std::string_view text) {
  std::uint64_t hash = 0xCBF29CE484222325ull;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ull;
  return hash;
}

const model::Model& model_of(const model::Fleet& fleet, model::ModelId id) {
  const auto found = std::find_if(fleet.models.begin(), fleet.models.end(),
                                  [&](const model::Model& m) { return m.id == id; });
  CHECK(found != fleet.models.end());
  return *found;
}

// Whether what is known of the pool's speed still holds.
bool same_speed(const model::Pool& a, const model::Pool& b) {
  return a.model == b.model && a.accelerator == b.accelerator &&
         a.tensor_parallel == b.tensor_parallel && a.precision == b.precision &&
         a.engine == b.engine;
}

perf::Prior prior_alone(const model::Pool& pool, const model::Model& m) {
  perf::ProfileQuery q;
  q.model = m.profile.empty() ? std::string_view(m.name) : std::string_view(m.profile);
  q.params_b = m.params_b;
  q.active_params_b = m.active_params_b;
  q.accelerator = pool.accelerator;
  q.tensor_parallel = pool.tensor_parallel;
  q.precision = pool.precision;
  q.engine = pool.engine == model::EngineKind::Auto ? "" : name(pool.engine);
  return perf::make_prior(q);
}

perf::Prior prior_of(const model::Pool& pool, const model::Fleet& fleet) {
  const model::Model& m = model_of(fleet, pool.model);
  perf::Prior prior = prior_alone(pool, m);
  for (const model::Pool& other : fleet.pools) {
    if (other.model != pool.model) continue;
    const perf::Prior known = prior_alone(other, m);
    if (known.origin != perf::Origin::Wide) return perf::beside(std::move(prior), known);
  }
  return prior;
}

}  // namespace

std::uint64_t lora_hash(std::string_view name) { return hash_text(name) | 1; }

void Core::apply(const Setup& setup, Instant now, Actions& out) {
  CHECK(setup.fleet != nullptr);
  const model::Fleet& fleet = *setup.fleet;
  config_ = setup.config;
  fleet_ = setup.fleet;
  load_.set_config(config_.routing, now);
  ejector_.set_config(config_.recovery);
  queue_.set_config(config_.admission);
  shuttle_.set_config(config_.dispatch);

  for (const model::Pool& pool : fleet.pools) add_pool(pool, fleet);
  std::vector<model::EndpointId> gone;
  for (const auto& [id, endpoint] : endpoints_) {
    const bool stays = std::any_of(fleet.endpoints.begin(), fleet.endpoints.end(),
                                   [&](const model::Endpoint& e) { return e.id == id; });
    if (!stays) gone.push_back(id);
  }
  for (const model::EndpointId id : gone) remove_endpoint(id, now);
  for (const model::Endpoint& endpoint : fleet.endpoints) add_endpoint(endpoint, now);
  std::erase_if(pools_, [&](const auto& entry) {
    return std::none_of(fleet.pools.begin(), fleet.pools.end(),
                        [&](const model::Pool& p) { return p.id == entry.first; });
  });

  pools_of_model_.clear();
  any_waits_to_depart_ = false;
  for (auto& [id, pool] : pools_) {
    any_waits_to_depart_ |= pool.declared.dispatch != model::DispatchMode::Immediate;
    pools_of_model_[pool.declared.model].push_back(id);
    std::sort(pool.endpoints.begin(), pool.endpoints.end());
    group_ranks(pool);
  }
  loras_of_model_.clear();
  for (const auto& [id, endpoint] : endpoints_) {
    const model::Endpoint& e = endpoint.declared;
    const model::Model& m = model_of(fleet, pools_.at(e.pool).declared.model);
    for (const std::string& lora : e.lists_loras ? e.loras : m.loras) {
      loras_of_model_[m.id].insert(lora_hash(lora));
    }
  }
  std::erase_if(service_seconds_,
                [&](const auto& entry) { return !pools_of_model_.contains(entry.first); });
  caps_.clear_limits();
  for (const model::Tenant& tenant : fleet.tenants) {
    caps_.set_limit(tenant.id, tenant.concurrency_max);
  }
  // Requests that wait for a model that is gone have nothing left to wait for.
  for (const model::ModelId model : queue_.models()) {
    if (servable(model)) {
      may_move_.insert(model);
      continue;
    }
    while (!queue_.empty(model)) {
      Request* request = find(queue_.front(model));
      queue_.pop(model);
      request->waiting = false;
      let_go(*request, now);
      lost_its_place(*request, now, out);
    }
  }
  refresh_at_ = now;
}

void Core::add_pool(const model::Pool& pool, const model::Fleet& fleet) {
  const auto [entry, fresh] = pools_.try_emplace(pool.id, config_.recovery);
  PoolState& state = entry->second;
  state.budget.set_config(config_.recovery);
  if (fresh || !same_speed(state.declared, pool)) {
    state.calibrator =
        std::make_unique<perf::Calibrator>(prior_of(pool, fleet), config_.calibrator);
    for (const model::EndpointId id : state.endpoints) endpoints_.at(id).believed_version = ~0ull;
  }
  if (state.declared.dispatch != pool.dispatch) state.acting = model::DispatchMode::Immediate;
  state.declared = pool;
  ejector_.set_ejected_share(pool.id, pool.ejected_share_max);
}

routing::EndpointFacts Core::facts(const PoolState& pool, const EndpointState& endpoint,
                                   Instant now) const {
  const model::Model& m = model_of(*fleet_, pool.declared.model);
  const perf::Belief belief = pool.calibrator->effective(endpoint.declared.id, now);
  routing::EndpointFacts f;
  f.pool = pool.declared.id;
  f.model = pool.declared.model;
  f.accelerator = hash_text(pool.declared.accelerator + "/" +
                            std::to_string(pool.declared.tensor_parallel) + "/" +
                            pool.declared.precision);
  f.role = pool.declared.role;
  const model::Endpoint& e = endpoint.declared;
  for (const std::string& lora : e.lists_loras ? e.loras : m.loras) {
    f.loras.push_back(lora_hash(lora));
  }
  f.tenants = pool.declared.tenants;
  f.serves = e.serves;
  f.concurrency_limit = pool.declared.concurrency_max;
  if (f.concurrency_limit == 0) f.concurrency_limit = endpoint.slots;
  if (f.concurrency_limit == 0) f.concurrency_limit = belief.coefficients.sequences_max;
  f.reach_seconds = endpoint.trouble_price;
  f.usd_per_second = pool.declared.usd_per_hour / 3600;
  f.context_tokens = m.context_tokens;
  f.coefficients = belief.coefficients;
  f.uncertainty = std::max(belief.sigma.prefill, belief.sigma.decode);
  return f;
}

void Core::add_endpoint(const model::Endpoint& declared, Instant now) {
  PoolState& pool = pools_.at(declared.pool);
  const auto [entry, fresh] = endpoints_.try_emplace(declared.id);
  EndpointState& state = entry->second;
  state.declared = declared;
  if (fresh) {
    state.observed_at = now;
    legal(state.grammar.take(model::EndpointGrammar::Signal::Declared));
    pool.endpoints.push_back(declared.id);
    ejector_.add(declared.id, declared.pool, pool.declared.ejected_share_max);
    count_health(state);
    index_.add(declared.id);
    ledger_.endpoint_added(declared.id, declared.pool, pool.declared.model,
                           pool.declared.usd_per_hour, now);
  } else {
    ledger_.endpoint_changed(declared.id, pool.declared.model, pool.declared.usd_per_hour, now);
  }
  const routing::EndpointFacts known = facts(pool, state, now);
  if (known.coefficients.kv_capacity_tokens > 0 && !state.observed) {
    index_.set_capacity(declared.id, known.coefficients.kv_capacity_tokens);
  }
  load_.add(declared.id, known);
}

void Core::remove_endpoint(model::EndpointId id, Instant now) {
  EndpointState& state = endpoints_.at(id);
  if (const auto pool = pools_.find(state.declared.pool); pool != pools_.end()) {
    std::erase(pool->second.endpoints, id);
    pool->second.healthy -= state.healthy ? 1 : 0;
    pool->second.calibrator->forget(id);
  }
  legal(state.grammar.take(model::EndpointGrammar::Signal::Removed));
  load_.remove(id);
  index_.remove(id);
  ejector_.remove(id);
  ledger_.endpoint_removed(id, now);
  std::erase(clearing_, id);
  endpoints_.erase(id);
}

}  // namespace signalbox::flow
