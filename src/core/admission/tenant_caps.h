// SPDX-License-Identifier: Apache-2.0
// How many requests of each tenant may be in flight at once, waiting ones included. Exceeding its
// own cap is the only reason for a tenant's 429. Under the core's lock. Keeps: what was acquired is
// counted until it is released, whatever happens to the limits meanwhile.
#pragma once

#include <cstddef>
#include <unordered_map>

#include "core/model/ids.h"

namespace signalbox::admission {

class TenantCaps {
 public:
  // Limits come from the configuration: clear, then set each. limit <= 0: unlimited, as are tenants
  // without a limit and tenant 0.
  void clear_limits() { limits_.clear(); }
  void set_limit(model::TenantId tenant, int limit);

  // Takes a place; false: the tenant is at its cap, and nothing was taken.
  [[nodiscard]] bool acquire(model::TenantId tenant);
  // Gives a place back: exactly once for each acquire() that said true.
  void release(model::TenantId tenant);

  int in_flight(model::TenantId tenant) const;
  bool idle() const { return in_flight_.empty(); }

 private:
  std::unordered_map<model::TenantId, int> limits_;     // looked up, never walked
  std::unordered_map<model::TenantId, int> in_flight_;  // likewise; no zeros, so it cannot grow
};

}  // namespace signalbox::admission
