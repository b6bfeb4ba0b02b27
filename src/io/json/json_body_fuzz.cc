// SPDX-License-Identifier: Apache-2.0
// Fuzzes scan() and Splice: whatever is accepted is JSON to simdjson too, gives the same blocks
// with white space added, and stays an acceptable request after every permitted change. The first
// byte picks the API.
#include <simdjson.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "io/json/request_scan.h"
#include "io/json/splice.h"

namespace signalbox::json {
namespace {

void check_oracle(std::string_view body) {
  simdjson::dom::parser parser;
  const auto code = parser.parse(body.data(), body.size()).error();
  CHECK(code == simdjson::SUCCESS || code == simdjson::NUMBER_ERROR);
}

void check_scan(std::string_view body, const RequestScan& out) {
  CHECK(body[out.close] == '}');
  std::int64_t bytes = 0;
  for (const auto& block : out.tool_blocks) bytes += block.bytes;
  for (const auto& block : out.message_blocks) bytes += block.bytes;
  CHECK(bytes == out.prompt_bytes);
  for (const Member& m : out.members) {
    if (!m.value) continue;
    CHECK(body[m.begin] == '"' && m.begin < m.value.begin && m.value.end <= out.close);
    CHECK(m.comma == 0 || body[m.comma] == ',');
  }
}

bool same(const std::vector<model::PromptBlock>& a, const std::vector<model::PromptBlock>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].hash != b[i].hash || a[i].bytes != b[i].bytes) return false;
  }
  return true;
}

// White space may stand around every structural byte outside strings.
std::string spaced(std::string_view body) {
  std::string out;
  bool inside = false;
  for (std::size_t i = 0; i < body.size(); ++i) {
    const char c = body[i];
    if (inside && c == '\\') {
      out += c;
      out += body[++i];
      continue;
    }
    if (c == '"') inside = !inside;
    const bool structural = !inside && std::string_view("{}[],:").find(c) != std::string_view::npos;
    if (structural) out += " \n";
    out += c;
    if (structural) out += "\t";
  }
  return out;
}

void check_splice(std::string_view body, model::Api api, const RequestScan& out) {
  Splice splice(body, out);
  splice.set_model("other \"name\"");
  if (api == model::Api::ChatCompletions || api == model::Api::Completions) splice.include_usage();
  splice.set_cache_salt("salt");
  splice.remove(Key::User);
  splice.remove(Key::Priority);
  splice.remove(Key::Metadata);
  const Edits edits = splice.edits();
  std::string changed;
  edits.append_to(changed);
  CHECK(changed.size() == edits.total_size());
  RequestScan again;
  CHECK(scan(changed, api, {}, again).has_value());
  CHECK(again.model == "other \"name\"" && !again.has(Key::User));
  CHECK(same(again.message_blocks, out.message_blocks));
  CHECK(same(again.tool_blocks, out.tool_blocks));
}

}  // namespace
}  // namespace signalbox::json

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace signalbox;
  if (size == 0) return 0;
  const auto api = static_cast<model::Api>(data[0] % 6);
  const std::string body(reinterpret_cast<const char*>(data) + 1, size - 1);
  json::RequestScan out;
  if (!json::scan(body, api, {}, out)) return 0;
  json::check_oracle(body);
  json::check_scan(body, out);
  json::check_splice(body, api, out);
  json::RequestScan wide;
  CHECK(json::scan(json::spaced(body), api, {}, wide).has_value());
  CHECK(json::same(wide.message_blocks, out.message_blocks));
  CHECK(json::same(wide.tool_blocks, out.tool_blocks));
  return 0;
}
