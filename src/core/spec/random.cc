// SPDX-License-Identifier: Apache-2.0
// The visitor that draws settings, and the mending that makes a drawn configuration valid.
#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "base/check.h"
#include "core/spec/config.h"
#include "core/spec/text_form.h"

namespace signalbox::spec {
namespace {

template <typename T>
void draw(Rng& rng, T& value, const Rule& rule);

struct FieldDrawer {
  Rng& rng;

  template <typename T>
  void operator()(T& field, std::string_view, std::string_view, Rule rule = {}) {
    draw(rng, field, rule);
  }
};

std::string draw_text(Rng& rng) {
  // Some that every YAML reader has taken for something else.
  constexpr std::array<std::string_view, 12> kTexts{
      "no",   "1e3",        "null",  "0x1F",     "a: b", "- x",
      "#off", "\"quoted\"", "tail ", "\xC3\xA9t\xC3\xA9", "~",    "12:30"};
  if (rng.chance(0.25)) return {};
  if (rng.chance(0.3)) return std::string(kTexts[rng.below(kTexts.size())]);
  std::string text;
  const std::uint64_t length = 1 + rng.below(12);
  for (std::uint64_t i = 0; i < length; ++i) {
    text += "abcdefghijklmnopqrstuvwxyz0123456789-_./:"[rng.below(41)];
  }
  return text;
}

void draw_source(Rng& rng, SecretSource& out, bool hash_allowed) {
  using From = SecretSource::From;
  switch (rng.below(hash_allowed ? 3 : 2)) {
    case 0: out = {From::Env, "KEY_" + std::to_string(rng.below(1'000'000))}; return;
    case 1: out = {From::File, "keys/" + std::to_string(rng.below(1'000'000))}; return;
    default: break;
  }
  out = {From::Hash, {}};
  for (int i = 0; i < 64; ++i) out.where += "0123456789abcdef"[rng.below(16)];
}

double draw_number(Rng& rng, double normal, const Rule& rule) {
  const double low = std::isfinite(rule.range.low) ? rule.range.low : -1e6;
  const double high = std::isfinite(rule.range.high) ? rule.range.high : 1e6;
  switch (rng.below(4)) {
    case 0: return normal;
    case 1: return low;
    case 2: return high;
    default: return rng.uniform(low, high);
  }
}

template <typename T>
void draw_list(Rng& rng, std::vector<T>& list, const Rule& rule) {
  const auto least = static_cast<std::uint64_t>(std::max(rule.range.low, 0.0));
  const std::uint64_t count = least + rng.below(3);
  list.clear();
  for (std::uint64_t i = 0; i < count; ++i) {
    T item{};
    draw(rng, item, {});
    if constexpr (std::is_same_v<T, std::string>) item += "item" + std::to_string(i);
    if constexpr (!Block<T>) {
      if (std::find(list.begin(), list.end(), item) != list.end()) continue;
    }
    list.push_back(std::move(item));
  }
}

template <typename T>
void draw(Rng& rng, T& value, const Rule& rule) {
  if constexpr (IsOptional<T>::value) {
    value.reset();
    if (rng.chance(0.5)) draw(rng, value.emplace(), rule);
  } else if constexpr (IsVector<T>::value) {
    draw_list(rng, value, rule);
  } else if constexpr (HasTextForm<T>) {
    value = TextForm<T>::draw(rng, rule, value);
  } else if constexpr (std::is_same_v<T, bool>) {
    value = rng.chance(0.5);
  } else if constexpr (std::is_enum_v<T>) {
    const auto& all = EnumNames<T>::values;
    value = all[rng.below(std::size(all))].first;
  } else if constexpr (std::is_integral_v<T>) {
    using Numbers = std::numeric_limits<T>;
    Rule narrowed = rule;
    narrowed.range.low = std::max(rule.range.low, static_cast<double>(Numbers::lowest()));
    narrowed.range.high = std::min(rule.range.high, static_cast<double>(Numbers::max()) / 2);
    value = static_cast<T>(draw_number(rng, static_cast<double>(value), narrowed));
  } else if constexpr (std::is_floating_point_v<T>) {
    value = static_cast<T>(draw_number(rng, static_cast<double>(value), rule));
  } else if constexpr (std::is_same_v<T, std::string>) {
    value = draw_text(rng);
  } else if constexpr (IsRef<T>::value) {
    value.name.clear();  // linked when all names are known
  } else if constexpr (Source<T>) {
    draw_source(rng, value, std::is_same_v<T, KeySource>);
  } else {
    FieldDrawer fields{rng};
    describe(fields, value);
  }
}

template <typename Resource>
void draw_resources(Rng& rng, std::string_view prefix, std::uint64_t most,
                    std::vector<Resource>& list) {
  const std::uint64_t count = rng.below(most + 1);
  for (std::uint64_t i = 0; i < count; ++i) {
    Resource& resource = list.emplace_back();
    draw(rng, resource, {});
    resource.name = std::string(prefix) + std::to_string(i);
  }
}

template <Kind K, typename Resource>
Ref<K> pick(Rng& rng, const std::vector<Resource>& list) {
  return {list[rng.below(list.size())].name};
}

template <Kind K, typename Resource>
std::vector<Ref<K>> pick_some(Rng& rng, const std::vector<Resource>& list) {
  std::vector<Ref<K>> refs;
  for (const Resource& resource : list) {
    if (rng.chance(0.3)) refs.push_back({resource.name});
  }
  return refs;
}

// Public names and adapters: unique over the whole, or left out.
void mend_names(Rng& rng, Config& config) {
  int next = 0;
  const auto fresh = [&] { return rng.chance(0.5) ? "public " + std::to_string(next++) : ""; };
  for (Model& model : config.models) {
    model.public_name = fresh();
    for (std::string& lora : model.loras) lora = "lora" + std::to_string(next++);
  }
  for (Route& route : config.routes) route.public_name = fresh();
}

void mend_gateway(Config& config) {
  Gateway& g = config.gateway;
  if (g.tls.cert.empty() || g.tls.key.empty()) g.tls = {};
  if (g.listen == g.admin.listen) g.admin.listen.port ^= 1;
  g.limits.header_line = std::min(g.limits.header_line, g.limits.header_block);
  g.limits.body = std::min(g.limits.body, g.limits.bodies);
}

void link(Rng& rng, Config& config) {
  for (Pool& pool : config.pools) {
    pool.model = pick<Kind::Model>(rng, config.models);
    pool.tenants = pick_some<Kind::Tenant>(rng, config.tenants);
    const bool tls = std::any_of(pool.endpoints.begin(), pool.endpoints.end(),
                                 [](const Url& url) { return url.tls; });
    if (!tls) pool.tls = {};
  }
  for (Route& route : config.routes) {
    route.body = std::min(route.body, config.gateway.limits.bodies);
    route.targets.resize(std::min(route.targets.size(), config.models.size()));
    for (std::size_t i = 0; i < route.targets.size(); ++i) {
      route.targets[i].model.name = config.models[i].name;
    }
    route.targets[0].weight = std::max(route.targets[0].weight, 0.5);
    route.fallback = pick_some<Kind::Model>(rng, config.models);
    if (!config.objectives.empty() && rng.chance(0.5)) {
      route.objective = pick<Kind::Objective>(rng, config.objectives);
    }
    route.tenants = pick_some<Kind::Tenant>(rng, config.tenants);
  }
}

// One source belongs to one tenant.
void mend_keys(Config& config) {
  std::set<SecretSource> seen;
  for (Tenant& tenant : config.tenants) {
    for (std::size_t i = 0; i < tenant.keys.size(); ++i) {
      if (seen.insert(tenant.keys[i]).second) continue;
      const std::string number = tenant.name.substr(std::string_view("tenant-").size());
      tenant.keys[i] = {{SecretSource::From::Env, "K_" + number + "_" + std::to_string(i)}};
    }
  }
}

}  // namespace

Config random(Rng& rng) {
  Config config;
  draw(rng, config.gateway, {});
  draw_resources(rng, "model-", 4, config.models);
  draw_resources(rng, "tenant-", 3, config.tenants);
  draw_resources(rng, "objective-", 3, config.objectives);
  if (!config.models.empty()) {
    draw_resources(rng, "pool-", 5, config.pools);
    draw_resources(rng, "route-", 4, config.routes);
  }
  mend_names(rng, config);
  mend_keys(config);
  mend_gateway(config);
  link(rng, config);
  Report report;
  check(config, report);
  CHECK(report.clean());
  return config;
}

}  // namespace signalbox::spec
