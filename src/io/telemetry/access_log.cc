// SPDX-License-Identifier: Apache-2.0
// Members stand in a fixed order: when, who, what, where, how it ended, how long, how much.
#include "io/telemetry/access_log.h"

#include <charconv>

namespace signalbox::telemetry {
namespace {

void text(std::string& out, std::string_view key, std::string_view value) {
  if (value.empty()) return;
  out.append(key);
  append_json_string(out, value);
}

void number(std::string& out, std::string_view key, std::int64_t value) {
  if (value < 0) return;
  char digits[24];
  out.append(key).append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

void millis(std::string& out, std::string_view key, Duration value) {
  if (value < Duration::zero()) return;
  out.append(key);
  append_millis(out, value.count());
}

}  // namespace

void AccessFormat::append(std::string& out, const AccessRecord& r) {
  out.append("{\"time\":\"");
  clock_.append(out, r.unix_nanos);
  out += '"';
  text(out, ",\"request_id\":", r.request_id);
  text(out, ",\"engine_request_id\":", r.engine_request_id);
  text(out, ",\"trace_id\":", r.trace_id);
  text(out, ",\"client\":", r.client);
  text(out, ",\"tenant\":", r.tenant);
  text(out, ",\"method\":", r.method);
  text(out, ",\"path\":", r.path);
  text(out, ",\"model\":", r.model);
  text(out, ",\"route\":", r.route);
  text(out, ",\"pool\":", r.pool);
  text(out, ",\"endpoint\":", r.endpoint);
  number(out, ",\"status\":", r.status);
  text(out, ",\"outcome\":", r.outcome);
  out.append(r.stream ? ",\"stream\":true" : ",\"stream\":false");
  number(out, ",\"attempts\":", r.attempts);
  millis(out, ",\"queue_ms\":", r.queue);
  millis(out, ",\"ttft_ms\":", r.ttft);
  millis(out, ",\"total_ms\":", r.total);
  number(out, ",\"prompt_tokens\":", r.usage.prompt_tokens);
  number(out, ",\"cached_tokens\":", r.usage.cached_tokens);
  number(out, ",\"completion_tokens\":", r.usage.completion_tokens);
  number(out, ",\"bytes_in\":", r.bytes_in);
  number(out, ",\"bytes_out\":", r.bytes_out);
  out.append("}\n");
}

}  // namespace signalbox::telemetry
