// SPDX-License-Identifier: Apache-2.0
// Names that the catalogue does not know, and pools that serve nobody.
#include <algorithm>

#include "core/perf/catalogue.h"
#include "core/perf/prior.h"
#include "core/spec/config.h"
#include "core/spec/nearest.h"

namespace signalbox::spec {
namespace {

std::string unknown(const std::string& path, std::string_view what, const std::string& name,
                    const std::vector<std::string_view>& near) {
  return path + ": no profile knows the " + std::string(what) + " " + quote(name) +
         ", so predictions start from a guess" + suggestion(name, near);
}

// It counts as fast as the other until it has been seen, whatever it is.
bool guessed_beside_known(const Config& config, const Pool& pool) {
  return pool.accelerator.empty() && std::ranges::any_of(config.pools, [&](const Pool& other) {
    return other.model.name == pool.model.name && !other.accelerator.empty();
  });
}

bool has_pool(const Config& config, const std::string& model) {
  return std::ranges::any_of(config.pools,
                             [&](const Pool& pool) { return pool.model.name == model; });
}

}  // namespace

std::vector<std::string> doubts(const Config& config) {
  std::vector<std::string> out;
  for (const Model& model : config.models) {
    if (model.profile.empty() || perf::find_model(model.profile) != nullptr) continue;
    out.push_back(unknown("Model/" + model.name + ".spec.profile", "model", model.profile,
                          perf::nearest_models(model.profile)));
  }
  for (const Pool& pool : config.pools) {
    if (pool.role != model::Role::Both) {
      out.push_back("Pool/" + pool.name + ".spec.role: requests are placed whole as yet, so this "
                    "pool serves nobody; leave `role` out.");
    }
    if (!pool.accelerator.empty() && perf::find_accelerator(pool.accelerator) == nullptr) {
      out.push_back(unknown("Pool/" + pool.name + ".spec.accelerator", "accelerator",
                            pool.accelerator, perf::nearest_accelerators(pool.accelerator)));
    }
    if (guessed_beside_known(config, pool)) {
      out.push_back("Pool/" + pool.name + ".spec.accelerator is empty, and another pool of " +
                    quote(pool.model.name) + " names one: this pool counts as fast as that "
                    "one until it has been seen; write the accelerator here, too.");
    }
    if (pool.dispatch == model::DispatchMode::Shuttle && pool.ranks < 2) {
      out.push_back("Pool/" + pool.name + ".spec.dispatch: a shuttle fills the `ranks` of an "
                    "engine, and this pool has no two; write `ranks`, or `dispatch: late`.");
    }
    const std::vector<std::string_view> formats = perf::precisions();
    if (!pool.precision.empty() && std::ranges::find(formats, pool.precision) == formats.end()) {
      out.push_back(unknown("Pool/" + pool.name + ".spec.precision", "number format",
                            pool.precision, formats));
    }
  }
  for (const Route& route : config.routes) {
    const std::string path = "Route/" + route.name + ".spec.";
    for (const Target& target : route.targets) {
      if (has_pool(config, target.model.name)) continue;
      out.push_back(path + "targets: no Pool serves " + quote(target.model.name) +
                    ", so this target takes no request.");
    }
    for (const auto& model : route.fallback) {
      if (has_pool(config, model.name)) continue;
      out.push_back(path + "fallback: no Pool serves " + quote(model.name) +
                    ", so nothing falls back to it.");
    }
  }
  return out;
}

}  // namespace signalbox::spec
