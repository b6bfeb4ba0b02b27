// SPDX-License-Identifier: Apache-2.0
// Rules between fields and between resources. Each problem stands at the path that mends it.
#include <algorithm>
#include <map>
#include <set>

#include "core/spec/config.h"
#include "core/spec/nearest.h"

namespace signalbox::spec {
namespace {

constexpr std::string_view kNameless = "?";  // the reader's word for who has no name

template <typename Resource>
std::string path_of(Kind kind, const Resource& resource) {
  return std::string(name(kind)) + "/" + resource.name;
}

std::string item(const std::string& list, std::size_t i) {
  return list + "[" + std::to_string(i) + "]";
}

class Checker {
 public:
  Checker(const Config& config, Report& report) : config_(config), report_(report) {
    collect(Kind::Model, config.models);
    collect(Kind::Tenant, config.tenants);
    collect(Kind::Objective, config.objectives);
  }

  void run() {
    gateway();
    for (const Pool& pool : config_.pools) this->pool(pool);
    for (const Route& route : config_.routes) this->route(route);
    tenant_keys();
    public_names();
  }

 private:
  template <typename Resource>
  void collect(Kind kind, const std::vector<Resource>& list) {
    auto& names = names_[kind];
    for (const Resource& resource : list) {
      if (resource.name != kNameless) names.insert(resource.name);
    }
  }

  template <Kind K>
  void refers(const Ref<K>& ref, const std::string& path) {
    if (!ref) return;
    const auto& names = names_[K];
    if (names.contains(ref.name)) return;
    std::string cure = "; declare it.";
    if (!names.empty() && !report_.full()) {
      constexpr std::size_t kComparedMax = 10'000;
      std::vector<std::string_view> candidates;
      for (auto at = names.begin(); at != names.end() && candidates.size() < kComparedMax; ++at) {
        candidates.push_back(*at);
      }
      cure = suggestion(ref.name, candidates);
    }
    report_.add(path, "there is no " + std::string(name(K)) + " " + quote(ref.name) + cure);
  }

  template <Kind K>
  void refer(const std::vector<Ref<K>>& refs, const std::string& path) {
    for (std::size_t i = 0; i < refs.size(); ++i) refers(refs[i], item(path, i));
  }

  void gateway() {
    const Gateway& g = config_.gateway;
    const std::string spec = path_of(Kind::Gateway, g) + ".spec";
    if (g.tls.cert.empty() != g.tls.key.empty()) {
      report_.add(spec + ".tls", "`cert` and `key` go together; write both or none.");
    }
    if (!g.tls.client_ca.empty() && g.tls.cert.empty()) {
      report_.add(spec + ".tls.client_ca", "needs `cert` and `key` beside it.");
    }
    if (serves_strangers(config_)) {
      report_.add(spec + ".listen",
                  quote(to_string(g.listen)) + " serves everybody who reaches this machine: declare"
                  " a Tenant with keys, listen on 127.0.0.1, or write `insecure: true`.");
    }
    if (!is_loopback(g.admin.listen) && g.admin.token.from == SecretSource::From::None) {
      report_.add(spec + ".admin.listen",
                  quote(to_string(g.admin.listen)) + " is reachable from outside: write `token`"
                  " beside it, or listen on 127.0.0.1.");
    }
    if (g.listen == g.admin.listen && g.listen.port != 0) {
      report_.add(spec + ".admin.listen", "is the address for clients too; choose another port.");
    }
    if (g.limits.header_line > g.limits.header_block) {
      report_.add(spec + ".limits.header_line", "is more than `header_block`; lower it.");
    }
    if (g.limits.body > g.limits.bodies) {
      report_.add(spec + ".limits.body", "is more than `bodies`, all of them together; lower it.");
    }
  }

  void pool(const Pool& pool) {
    const std::string spec = path_of(Kind::Pool, pool) + ".spec";
    refers(pool.model, spec + ".model");
    refer(pool.tenants, spec + ".tenants");
    const bool any_tls = std::any_of(pool.endpoints.begin(), pool.endpoints.end(),
                                     [](const Url& url) { return url.tls; });
    if (!any_tls && pool.tls != UpstreamTls{}) {
      report_.add(spec + ".tls", "has no effect: no endpoint is an `https` URL; remove it.");
    }
  }

  void route(const Route& route) {
    const std::string spec = path_of(Kind::Route, route) + ".spec";
    if (route.body > config_.gateway.limits.bodies) {
      report_.add(spec + ".body", "is more than Gateway.limits.bodies, all of them together; lower"
                                  " it.");
    }
    double weights = 0;
    std::set<std::string> seen;
    for (std::size_t i = 0; i < route.targets.size(); ++i) {
      const Target& target = route.targets[i];
      const std::string path = item(spec + ".targets", i) + ".model";
      refers(target.model, path);
      if (target.model && !seen.insert(target.model.name).second) {
        report_.add(path, quote(target.model.name) + " is a target already; remove one.");
      }
      weights += target.weight;
    }
    if (!route.targets.empty() && !(weights > 0)) {
      report_.add(spec + ".targets", "have no weight at all; give one of them more than 0.");
    }
    refer(route.fallback, spec + ".fallback");
    refers(route.objective, spec + ".objective");
    refer(route.tenants, spec + ".tenants");
  }

  // A key says who somebody is, so it belongs to one tenant.
  void tenant_keys() {
    std::map<SecretSource, std::string> owner;
    for (const Tenant& tenant : config_.tenants) {
      const std::string list = path_of(Kind::Tenant, tenant) + ".spec.keys";
      for (std::size_t i = 0; i < tenant.keys.size(); ++i) {
        if (tenant.keys[i].from == SecretSource::From::None) continue;
        const auto [at, fresh] = owner.try_emplace(tenant.keys[i], tenant.name);
        if (fresh || at->second == tenant.name) continue;
        report_.add(item(list, i), "is a key of Tenant " + quote(at->second) + " too; a key"
                                   " belongs to one tenant.");
      }
    }
  }

  // What clients ask for names one thing: a route, a model without one, or an adapter.
  void public_names() {
    std::map<std::string, std::string> models, routes, loras;
    for (const Model& model : config_.models) {
      unique(models, model.public_or_name(), path_of(Kind::Model, model));
    }
    for (const Route& route : config_.routes) {
      unique(routes, route.public_or_name(), path_of(Kind::Route, route));
    }
    for (const Model& model : config_.models) {
      const std::string list = path_of(Kind::Model, model) + ".spec.loras";
      for (std::size_t i = 0; i < model.loras.size(); ++i) {
        const std::string& lora = model.loras[i];
        for (const auto* taken : {&models, &routes, &loras}) {
          if (const auto found = taken->find(lora); found != taken->end()) {
            report_.add(item(list, i), quote(lora) + " is taken by " + found->second +
                                           "; rename one.");
          }
        }
        loras.try_emplace(lora, path_of(Kind::Model, model));
      }
    }
  }

  void unique(std::map<std::string, std::string>& taken, const std::string& name,
              const std::string& path) {
    if (name.empty() || name == kNameless) return;
    const auto [at, fresh] = taken.try_emplace(name, path);
    if (fresh) return;
    report_.add(path + ".spec.public_name",
                quote(name) + " is the name of " + at->second + " too; choose another.");
  }

  const Config& config_;
  Report& report_;
  std::map<Kind, std::set<std::string_view>> names_;
};

}  // namespace

bool serves_strangers(const Config& config) {
  const Gateway& gateway = config.gateway;
  const bool known = !config.tenants.empty() || !gateway.tls.client_ca.empty();
  return !is_loopback(gateway.listen) && !known && !gateway.insecure;
}

void check(const Config& config, Report& report) { Checker(config, report).run(); }

}  // namespace signalbox::spec
