// SPDX-License-Identifier: Apache-2.0
// Look-ups in the published configuration.
#include "io/gateway/published.h"

#include <algorithm>

namespace signalbox::gateway {

const EndpointAccess* Published::endpoint(model::EndpointId id) const {
  const auto found = std::lower_bound(
      endpoints.begin(), endpoints.end(), id,
      [](const EndpointAccess& entry, model::EndpointId wanted) { return entry.id < wanted; });
  return found != endpoints.end() && found->id == id ? &*found : nullptr;
}

std::vector<std::string> Published::names_for(model::TenantId tenant) const {
  std::vector<std::string> result;
  for (const auto& [name, access] : names) {
    if (allowed(access.tenants, tenant)) result.push_back(name);
  }
  return result;
}

bool allowed(const std::vector<model::TenantId>& list, model::TenantId tenant) {
  return list.empty() || std::find(list.begin(), list.end(), tenant) != list.end();
}

}  // namespace signalbox::gateway
