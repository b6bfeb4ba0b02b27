// SPDX-License-Identifier: Apache-2.0
// Goal: escaping gives valid JSON that means the text, for every text; error bodies have the shapes
// that clients read.
#include "io/json/escape.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <simdjson.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "io/json/request_scan.h"

namespace signalbox::json {
namespace {

TEST(Escape, writes_short_escapes_and_leaves_plain_text) {
  EXPECT_EQ(escape("plain é €"), "plain é €");
  EXPECT_EQ(quote("a\"b\\c\nd\re\tf\x01g\x1F"), R"("a\"b\\c\nd\re\tf\u0001g\u001f")");
  EXPECT_EQ(quote(""), "\"\"");
}

RC_GTEST_PROP(Escape, of_any_bytes_is_valid_and_of_valid_text_means_the_text,
              (const std::string& text)) {
  const std::string quoted = quote(text);
  const auto parsed = nlohmann::json::parse(quoted);
  if (simdjson::validate_utf8(text)) {
    RC_ASSERT(parsed.get<std::string>() == text);
    RC_ASSERT(decode(quoted) == text);
  } else {
    RC_ASSERT(parsed.get<std::string>().find("\xEF\xBF\xBD") != std::string::npos);
  }
}

// The rule itself, slowly: each byte that begins no valid sequence becomes one U+FFFD.
std::string repaired_slowly(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    std::size_t size = 1;
    while (size <= 4 && size <= text.size() && !simdjson::validate_utf8(text.data(), size)) ++size;
    const bool valid = size <= 4 && size <= text.size();
    out += valid ? text.substr(0, size) : "\xEF\xBF\xBD";
    text.remove_prefix(valid ? size : 1);
  }
  return out;
}

// Characters of every length, faults of every kind, and runs that put them at every place.
std::string any_text() {
  const std::vector<std::string> parts = {
      "a", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80",  // these four are valid
      "\xFF", "\x80", "\xC3", "\xC0\xAF", "\xE2\x82", "\xE0\x9F\xBF", "\xED\xA0\x80",
      "\xF0\x9F\x98", "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80"};
  std::string out;
  const auto count = *rc::gen::inRange(0, 12);
  for (int i = 0; i < count; ++i) {
    const std::string& run = parts[*rc::gen::inRange<std::size_t>(0, 4)];
    const auto times = *rc::gen::inRange(0, 700 / static_cast<int>(run.size()));
    for (int j = 0; j < times; ++j) out += run;
    out += *rc::gen::elementOf(parts);
  }
  return out;
}

RC_GTEST_PROP(Mended, replaces_each_byte_that_begins_no_character_and_nothing_else, ()) {
  const std::string text = any_text();
  const std::string out = mended(text);
  RC_ASSERT(out == repaired_slowly(text));
  RC_ASSERT(simdjson::validate_utf8(out));
}

TEST(ErrorBody, has_the_openai_shape) {
  EXPECT_EQ(openai_error("no \"x\"", "invalid_request_error", "model", "model_not_found"),
            R"({"error":{"message":"no \"x\"","type":"invalid_request_error",)"
            R"("param":"model","code":"model_not_found"}})");
  EXPECT_EQ(error_body(model::Api::ChatCompletions, 503, "busy"),
            R"({"error":{"message":"busy","type":"server_error","param":null,"code":null}})");
  const auto limited =
      nlohmann::json::parse(error_body(model::Api::Responses, 429, "slow down"));
  EXPECT_EQ(limited["error"]["type"], "rate_limit_error");
  EXPECT_EQ(limited["error"]["code"], "rate_limit_exceeded");
}

TEST(ErrorBody, has_the_anthropic_shape_on_its_endpoints) {
  EXPECT_EQ(error_body(model::Api::Messages, 404, "no such model"),
            R"({"type":"error","error":{"type":"not_found_error","message":"no such model"}})");
  EXPECT_EQ(error_body(model::Api::CountTokens, 503, "busy"),
            R"({"type":"error","error":{"type":"overloaded_error","message":"busy"}})");
}

}  // namespace
}  // namespace signalbox::json
