// SPDX-License-Identifier: Apache-2.0
// Goal: the scan accepts exactly RFC 8259 in UTF-8, with two deliberate limits (depth, lone
// surrogates). Method: a table of syntax classes with the answer for each, and simdjson as oracle
// over random texts.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <simdjson.h>

#include <string>
#include <string_view>

#include "io/json/bytes.h"
#include "io/json/request_scan.h"

namespace signalbox::json {
namespace {

using namespace std::string_literals;

// A chat request that holds `value` under a key that nobody reads.
std::string with(std::string_view value) {
  return R"({"model":"m","messages":[{}],"x":)" + std::string(value) + "}";
}

Result<void> scanned(std::string_view body) {
  static RequestScan out;
  return scan(body, model::Api::ChatCompletions, {}, out);
}

struct Case {
  std::string text;
  bool valid;
};

TEST(JsonSyntax, values_are_decided_class_by_class) {
  const Case cases[] = {
      {"null", true}, {"true", true}, {"false", true}, {"{}", true}, {"[]", true}, {"\"\"", true},
      {"0", true}, {"-0", true}, {"12", true}, {"-12", true}, {"0.5", true}, {"1.25e3", true},
      {"1E+3", true}, {"1e-3", true}, {"0e0", true}, {"1e400", true}, {"-1e-400", true},
      {"12345678901234567890123", true}, {"0.00000000000000000000000000001", true},
      {"[1,2]", true}, {"[ 1 , 2 ]", true}, {"[[[[]]]]", true}, {"{\"a\":{\"b\":[]}}", true},
      {"{\"a\":1,\"a\":2}", true},  // a duplicate of a key that nobody reads
      {"\t\n\r 1", true}, {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", true}, {"\"\\u00e9\\u20AC\"", true},
      {"\"\\uD83D\\uDE00\"", true}, {"\"\\u0000\"", true}, {"\"\x7F\"", true},
      {"\"\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80\"", true}, {"\"\xEF\xBF\xBF\"", true},
      {"\"/\"", true}, {"{\"\":0}", true},
      {"", false}, {"nul", false}, {"nulll", false}, {"True", false}, {"TRUE", false},
      {"undefined", false}, {"NaN", false}, {"Infinity", false}, {"-Infinity", false},
      {"01", false}, {"-01", false}, {"+1", false}, {"-", false}, {".5", false}, {"1.", false},
      {"1.e3", false}, {"1e", false}, {"1e+", false}, {"0x10", false}, {"1_000", false},
      {"--1", false}, {"1 2", false}, {"[1,]", false}, {"[,1]", false}, {"[1 2]", false},
      {"[1,,2]", false}, {"[", false}, {"]", false}, {"[1}", false}, {"{", false},
      {"{\"a\"}", false}, {"{\"a\":}", false}, {"{\"a\":1,}", false}, {"{,\"a\":1}", false},
      {"{a:1}", false}, {"{'a':1}", false}, {"{1:1}", false}, {"{\"a\":1 \"b\":2}", false},
      {"{\"a\" 1}", false}, {"{\"a\"::1}", false}, {"'a'", false}, {"\"a", false}, {"a\"", false},
      {"\"\t\"", false}, {"\"\n\"", false}, {"\"\x01\"", false}, {"\"\0\""s, false},
      {"\"\\x41\"", false}, {"\"\\'\"", false}, {"\"\\\"", false}, {"\"\\u12\"", false},
      {"\"\\u12G4\"", false}, {"\"\\U0041\"", false}, {"\"\\uD800\"", false},
      {"\"\\uDC00\"", false}, {"\"\\uD800\\u0041\"", false}, {"\"\\uD800\\uD800\"", false},
      {"\"\\uDE00\\uD83D\"", false}, {"\"\xC3\"", false}, {"\"\x80\"", false},
      {"\"\xC0\x80\"", false}, {"\"\xED\xA0\x80\"", false}, {"\"\xF4\x90\x80\x80\"", false},
      {"\"\xFF\"", false}, {"\xC2\xA0" "1", false}, {"\f1", false}, {"\v1", false}, {"\0"s, false},
      {"1\0"s, false}, {"/* */ 1", false}, {"1 // one", false},
      {"\xE2\x80\x9C" "a\xE2\x80\x9D", false},
  };
  for (const Case& c : cases) {
    const auto result = scanned(with(c.text));
    EXPECT_EQ(result.has_value(), c.valid) << c.text;
    if (!result) {
      EXPECT_EQ(result.error().code, Code::InvalidArgument);
      EXPECT_NE(result.error().message.find("byte"), std::string::npos) << result.error().message;
    }
  }
}

TEST(JsonSyntax, bodies_are_decided_class_by_class) {
  const std::string good = with("1");
  const Case cases[] = {
      {good, true}, {" \r\n\t" + good + " \r\n\t", true},
      {"", false}, {" ", false}, {"null", false}, {"[]", false}, {"\"a\"", false}, {"1", false},
      {"[" + good + "]", false}, {good + good, false}, {good + ",", false}, {good + "\0"s, false},
      {good + "}", false}, {"\xEF\xBB\xBF" + good, false}, {"\0"s + good, false},
      {good.substr(0, good.size() - 1), false}, {"data: " + good, false},
      {"model=m&messages=", false},
  };
  for (const Case& c : cases) EXPECT_EQ(scanned(c.text).has_value(), c.valid) << c.text;
}

TEST(JsonSyntax, nesting_is_allowed_up_to_the_limit_and_not_beyond) {
  const auto nested = [](int depth) {
    const auto n = static_cast<std::size_t>(depth);
    return with(std::string(n, '[') + std::string(n, ']'));
  };
  EXPECT_TRUE(scanned(nested(63)).has_value());  // the body's own object is the 64th
  EXPECT_FALSE(scanned(nested(64)).has_value());
  EXPECT_FALSE(scanned(with(std::string(1000000, '['))).has_value());
}

TEST(JsonSyntax, the_message_names_the_byte_of_a_bad_character) {
  const auto result = scanned(R"({"model":"m",})");
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().message,
            "The request body is not valid JSON: a key in quotes is expected (byte 13).");
  const auto utf8 = scanned(with("\"" + std::string(9000, 'a') + "\xFF\""));
  ASSERT_FALSE(utf8.has_value());
  EXPECT_NE(utf8.error().message.find("byte 9034"), std::string::npos) << utf8.error().message;
}

TEST(JsonSyntax, every_prefix_of_a_body_is_refused) {
  const std::string body = with(R"({"a":[1,2.5e3,"x\n\ud83d\ude00"],"b":null,"c":true})");
  ASSERT_TRUE(scanned(body).has_value());
  for (std::size_t n = 0; n < body.size(); ++n) {
    EXPECT_FALSE(scanned(std::string_view(body).substr(0, n)).has_value()) << n;
  }
}

TEST(FindSpecial, finds_what_a_byte_loop_finds_at_every_place_and_length) {
  for (const char special : {'"', '\\', '\n', '\0', '\x1F'}) {
    for (std::size_t size = 0; size < 300; ++size) {
      std::string text(size, 'a');
      const char* end = text.data() + size;
      EXPECT_EQ(find_special(text.data(), end), end);
      for (std::size_t at = 0; at < size; at += 1 + size / 40) {
        text[at] = special;
        EXPECT_EQ(find_special(text.data(), end), text.data() + at);
        EXPECT_EQ(find_special_far(text.data(), end), text.data() + at);
        text[at] = '\xFF';
      }
    }
  }
}

// simdjson reads numbers, so it refuses those that no machine number holds.
bool is_number_fault(simdjson::error_code code) {
  return code == simdjson::NUMBER_ERROR || code == simdjson::NUMBER_OUT_OF_RANGE;
}

RC_GTEST_PROP(JsonSyntax, agrees_with_simdjson_about_random_texts, ()) {
  static const std::vector<std::string> kBits = {
      "{", "}", "[", "]", ",", ":", "\"a\"", "\"", "\\", "\\n", "\\u0041", "\\ud83d\\ude00",
      "\\ud83d", "1", "-", "0", ".", "e", "E+", "true", "false", "null", " ", "\n", "\t", "\x01",
      "\xC3\xA9", "\xC3", "a", "\"k\":", "[1,2]", "{\"b\":3}", "\"text of more than one vector\""};
  const auto picks = *rc::gen::container<std::vector<std::size_t>>(
      rc::gen::inRange<std::size_t>(0, kBits.size()));
  std::string text;
  for (const std::size_t i : picks) text += kBits[i];
  const std::string body = with(text);
  simdjson::dom::parser parser;
  const auto code = parser.parse(body).error();
  if (is_number_fault(code)) return;
  RC_ASSERT(scanned(body).has_value() == (code == simdjson::SUCCESS));
}

RC_GTEST_PROP(JsonSyntax, agrees_with_simdjson_about_damaged_bodies, ()) {
  std::string body = with(R"({"a":[1,-2.5e+3,"x\n\ud83d\ude00 é"],"b":{"c":[null,true,{}]}})");
  const int damages = *rc::gen::inRange(1, 4);
  for (int i = 0; i < damages; ++i) {
    const auto at = *rc::gen::inRange<std::size_t>(0, body.size());
    switch (*rc::gen::inRange(0, 3)) {
      case 0: body.erase(at, 1); break;
      case 1: body.insert(at, 1, *rc::gen::arbitrary<char>()); break;
      default: body[at] = *rc::gen::elementOf(std::string("{}[],:\"\\0eEntf1.- \xE2"));
    }
  }
  simdjson::dom::parser parser;
  const auto document = parser.parse(body);
  if (is_number_fault(document.error())) return;
  const auto ours = scanned(body);
  if (document.error() != simdjson::SUCCESS) {
    RC_ASSERT(!ours.has_value());
  } else if (!ours.has_value()) {
    // Valid JSON that is no chat request any more: the message says so.
    RC_ASSERT(ours.error().message.find("not valid JSON: a") == std::string::npos ||
              ours.error().message.find("must be a JSON object") != std::string::npos);
  }
}

}  // namespace
}  // namespace signalbox::json
