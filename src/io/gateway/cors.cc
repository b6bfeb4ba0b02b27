// SPDX-License-Identifier: Apache-2.0
// Preflight answers and the fields of actual answers.
#include "io/gateway/cors.h"

#include <algorithm>

#include "io/http/writer.h"

namespace signalbox::gateway {

void append_cors(std::string& out, const Published& published, const http::RequestHead& head) {
  const auto& origins = published.config.gateway.cors.origins;
  if (origins.empty()) return;
  const auto origin = head.fields.find(http::FieldName::Origin);
  if (!origin) return;
  const bool known = std::any_of(origins.begin(), origins.end(), [&](const auto& entry) {
    return entry.text == "*" || entry.text == *origin;
  });
  if (!known) return;
  http::append_field(out, "access-control-allow-origin", *origin);
  http::append_field(out, "vary", "Origin");
  http::append_field(out, "access-control-expose-headers",
                     "x-request-id, retry-after, x-signalbox-endpoint, x-signalbox-queue-ms, "
                     "x-signalbox-decision");
}

void append_preflight(std::string& out, const Published& published, const http::RequestHead& head,
                      std::string_view request_id) {
  http::append_status_line(out, 204);
  http::append_field(out, "allow", "GET, HEAD, POST, OPTIONS");
  const std::size_t before = out.size();
  append_cors(out, published, head);
  if (out.size() > before) {
    http::append_field(out, "access-control-allow-methods", "GET, HEAD, POST, OPTIONS");
    const auto wanted = head.fields.find(http::FieldName::AccessControlRequestHeaders);
    if (wanted) http::append_field(out, "access-control-allow-headers", *wanted);
    http::append_field(out, "access-control-max-age", "600");
  }
  if (!request_id.empty()) http::append_field(out, "x-request-id", request_id);
  http::append_end_of_head(out);
}

}  // namespace signalbox::gateway
