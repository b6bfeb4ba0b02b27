// SPDX-License-Identifier: Apache-2.0
// Two gateways side by side: whether they are the same, and what only a start can change.
#include "core/spec/gateway.h"

#include <cstddef>

#include "core/spec/config.h"
#include "core/spec/same.h"

namespace signalbox::spec {
namespace {

template <typename T>
void keep(T& next, const T& running, const std::string& path, std::vector<std::string>& kept);

// Second pass, after a FieldFinder over what runs.
struct StartKeeper {
  const std::vector<const void*>& running;
  const std::string& path;
  std::vector<std::string>& kept;
  std::size_t at = 0;

  template <typename T>
  void operator()(T& field, std::string_view name, std::string_view, Rule rule = {}) {
    const T& old = *static_cast<const T*>(running[at++]);
    const std::string here = path + "." + std::string(name);
    if constexpr (Block<T> && !HasTextForm<T>) {
      if (!rule.at_start) return keep(field, old, here, kept);
      if (same_settings(field, old)) return;
    } else if (!rule.at_start || field == old) {
      return;
    }
    field = old;
    kept.push_back(here);
  }
};

template <typename T>
void keep(T& next, const T& running, const std::string& path, std::vector<std::string>& kept) {
  FieldFinder finder;
  describe(finder, const_cast<T&>(running));
  StartKeeper keeper{finder.found, path, kept};
  describe(keeper, next);
}

}  // namespace

bool Gateway::operator==(const Gateway& other) const {
  return name == other.name && same_settings(*this, other);
}

std::vector<std::string> keep_until_start(Gateway& next, const Gateway& running) {
  std::vector<std::string> kept;
  keep(next, running, "Gateway", kept);
  return kept;
}

}  // namespace signalbox::spec
