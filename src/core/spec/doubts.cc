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
    const std::vector<std::string_view> formats = perf::precisions();
    if (!pool.precision.empty() && std::ranges::find(formats, pool.precision) == formats.end()) {
      out.push_back(unknown("Pool/" + pool.name + ".spec.precision", "number format",
                            pool.precision, formats));
    }
  }
  return out;
}

}  // namespace signalbox::spec
