// SPDX-License-Identifier: Apache-2.0
// Counts places per tenant.
#include "core/admission/tenant_caps.h"

#include "base/check.h"

namespace signalbox::admission {

void TenantCaps::set_limit(model::TenantId tenant, int limit) {
  if (limit > 0 && tenant) limits_[tenant] = limit;
}

bool TenantCaps::acquire(model::TenantId tenant) {
  int& count = in_flight_[tenant];
  const auto limit = limits_.find(tenant);
  if (limit != limits_.end() && count >= limit->second) return false;
  ++count;
  return true;
}

void TenantCaps::release(model::TenantId tenant) {
  const auto at = in_flight_.find(tenant);
  CHECK(at != in_flight_.end());
  if (--at->second == 0) in_flight_.erase(at);
}

int TenantCaps::in_flight(model::TenantId tenant) const {
  const auto at = in_flight_.find(tenant);
  return at == in_flight_.end() ? 0 : at->second;
}

}  // namespace signalbox::admission
