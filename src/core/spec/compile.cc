// SPDX-License-Identifier: Apache-2.0
// From names to ids: one function per noun, then each list in the order of its ids.
#include "core/spec/compile.h"

#include <algorithm>
#include <set>

namespace signalbox::spec {
namespace {

template <typename T>
void sort_by_id(std::vector<T>& list) {
  std::sort(list.begin(), list.end(), [](const T& a, const T& b) { return a.id < b.id; });
}

Duration duration_or_none(const std::optional<Duration>& value) {
  return value.value_or(Duration::max());
}

class Compiler {
 public:
  Compiler(const Config& config, Directory& directory, const Resolved& resolved)
      : config_(config), directory_(directory), resolved_(resolved) {}

  Compiled run() {
    directory_.begin();
    for (const Tenant& tenant : config_.tenants) {
      fleet().tenants.push_back(
          {directory_.tenant(tenant.name), tenant.name, tenant.concurrency_max});
    }
    for (const Model& model : config_.models) this->model(model);
    for (const Objective& objective : config_.objectives) this->objective(objective);
    for (const Pool& pool : config_.pools) this->pool(pool);
    routes();
    directory_.end();
    sort_by_id(fleet().models);
    sort_by_id(fleet().pools);
    sort_by_id(fleet().endpoints);
    sort_by_id(out_.origins);
    sort_by_id(fleet().tenants);
    sort_by_id(fleet().objectives);
    sort_by_id(fleet().routes);
    return std::move(out_);
  }

 private:
  model::Fleet& fleet() { return out_.fleet; }

  void model(const Model& m) {
    model::Model out;
    out.id = directory_.model(m.name);
    out.name = m.public_or_name();
    out.profile = m.profile;
    out.params_b = m.params_b;
    out.active_params_b = m.active_params_b;
    out.context_tokens = m.context_tokens;
    out.loras = m.loras;
    fleet().models.push_back(std::move(out));
  }

  void objective(const Objective& o) {
    model::Objective out;
    out.id = directory_.objective(o.name);
    out.name = o.name;
    out.ttft = duration_or_none(o.ttft);
    out.tpot = duration_or_none(o.tpot);
    out.e2e = duration_or_none(o.e2e);
    out.latency_weight = o.latency_weight;
    out.seconds_per_usd = o.seconds_per_usd;
    fleet().objectives.push_back(std::move(out));
  }

  std::vector<model::TenantId> tenants(const std::vector<Ref<Kind::Tenant>>& refs) {
    std::vector<model::TenantId> ids;
    for (const auto& ref : refs) ids.push_back(directory_.tenant(ref.name));
    std::sort(ids.begin(), ids.end());
    return ids;
  }

  void pool(const Pool& p) {
    model::Pool out;
    out.id = directory_.pool(p.name);
    out.name = p.name;
    out.model = directory_.model(p.model.name);
    out.served_model = p.served_model;
    out.engine = p.engine;
    out.role = p.role;
    out.accelerator = p.accelerator;
    out.tensor_parallel = p.tensor_parallel;
    out.precision = p.precision;
    out.usd_per_hour = p.usd_per_hour;
    out.concurrency_max = p.concurrency_max;
    out.ejected_share_max = p.ejected_share_max;
    out.dispatch = p.dispatch;
    out.tenants = tenants(p.tenants);
    std::set<std::string> taken;
    for (const Url& url : p.endpoints) endpoints(out.id, p, url, taken);
    fleet().pools.push_back(std::move(out));
  }

  void endpoints(model::PoolId pool, const Pool& p, const Url& url, std::set<std::string>& taken) {
    for (const std::string& address : addresses(p, url)) {
      if (!taken.insert(address).second) continue;
      const int ranks = std::max(p.ranks, 1);
      for (int i = 0; i < ranks; ++i) {
        const int rank = p.ranks > 0 ? i : -1;
        const auto id = directory_.endpoint(pool, address, rank);
        fleet().endpoints.push_back({id, pool, address, rank, url.tls});
        out_.origins.push_back({id, url, p.name});
      }
    }
  }

  // The numeric addresses behind a URL that an upstream may have, in order.
  std::vector<std::string> addresses(const Pool& p, const Url& url) {
    const std::string name = host_port(url);
    if (parse_ip(url.host)) return {name};
    const auto found = resolved_.find(name);
    std::vector<std::string> good;
    if (found == resolved_.end() || found->second.empty()) {
      out_.notes.push_back("Pool/" + p.name + ": " + name + " has no address at present.");
      return good;
    }
    for (const std::string& text : found->second) {
      const auto address = parse_address(text);
      const auto ip = address ? parse_ip(address->host) : std::nullopt;
      const std::string_view why = ip ? refusal(*ip) : "is no IP address with a port";
      if (why.empty()) {
        good.push_back(to_string(*address));
      } else {
        out_.notes.push_back("Pool/" + p.name + ": " + name + " stands for " + text + ", which " +
                             std::string(why) + "; it is left out.");
      }
    }
    std::sort(good.begin(), good.end());
    return good;
  }

  void routes() {
    std::set<std::string> names;
    for (const Route& r : config_.routes) {
      model::Route out;
      out.name = r.public_or_name();
      out.id = directory_.route(out.name);
      for (const Target& t : r.targets) {
        out.targets.push_back({directory_.model(t.model.name), t.weight});
      }
      for (const auto& ref : r.fallback) out.fallback.push_back(directory_.model(ref.name));
      if (r.objective) out.objective = directory_.objective(r.objective.name);
      out.tenants = tenants(r.tenants);
      names.insert(out.name);
      fleet().routes.push_back(std::move(out));
    }
    for (const Model& m : config_.models) {
      if (names.contains(m.public_or_name())) continue;
      model::Route out;
      out.name = m.public_or_name();
      out.id = directory_.route(out.name);
      out.targets.push_back({directory_.model(m.name), 1});
      fleet().routes.push_back(std::move(out));
    }
  }

  const Config& config_;
  Directory& directory_;
  const Resolved& resolved_;
  Compiled out_;
};

}  // namespace

void Directory::end() {
  models_.prune(now_, kPastNamesMax);
  pools_.prune(now_, kPastNamesMax);
  tenants_.prune(now_, kPastNamesMax);
  objectives_.prune(now_, kPastNamesMax);
  routes_.prune(now_, kPastNamesMax);
  endpoints_.prune(now_, kPastNamesMax);
}

std::vector<std::string> unresolved(const Config& config) {
  std::set<std::string> names;
  for (const Pool& pool : config.pools) {
    for (const Url& url : pool.endpoints) {
      if (!parse_ip(url.host)) names.insert(host_port(url));
    }
  }
  return {names.begin(), names.end()};
}

Compiled compile(const Config& config, Directory& directory, const Resolved& resolved) {
  return Compiler(config, directory, resolved).run();
}

}  // namespace signalbox::spec
