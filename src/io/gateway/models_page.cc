// SPDX-License-Identifier: Apache-2.0
// Lists what may be asked for.
#include "io/gateway/models_page.h"

#include "io/json/escape.h"

namespace signalbox::gateway {

std::string model_entry(std::string_view name, const NameAccess& access) {
  const std::string id = json::quote(name);
  std::string entry = "{\"id\":" + id + ",\"object\":\"model\",\"created\":0,\"owned_by\":" +
                      json::quote(access.owner) + ",\"type\":\"model\",\"display_name\":" + id +
                      ",\"created_at\":\"1970-01-01T00:00:00Z\"";
  if (access.context_tokens > 0) {
    entry += ",\"max_model_len\":" + std::to_string(access.context_tokens);
  }
  return entry + "}";
}

std::string models_page(const Published& published, model::TenantId tenant) {
  std::string page = "{\"object\":\"list\",\"data\":[";
  bool first = true;
  for (const auto& [name, access] : published.names) {
    if (!allowed(access.tenants, tenant)) continue;
    if (!first) page += ',';
    first = false;
    page += model_entry(name, access);
  }
  return page + "],\"has_more\":false}";
}

}  // namespace signalbox::gateway
