// SPDX-License-Identifier: Apache-2.0
// Goal: a spliced body means the original with exactly the change that was asked for, and every
// other byte stays. Method: RapidCheck draws bodies and changes; nlohmann's parser is the judge of
// meaning, the untouched stretches are compared as bytes.
#include "io/json/splice.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace signalbox::json {
namespace {

using Json = nlohmann::ordered_json;

struct Spliced {
  explicit Spliced(std::string text) : body(std::move(text)) {
    const auto result = scan(body, model::Api::ChatCompletions, {}, out);
    if (!result) ADD_FAILURE() << result.error().message << " " << body;
  }
  template <typename F>
  std::string with(F&& change) const {
    Splice splice(body, out);
    change(splice);
    const Edits edits = splice.edits();
    std::vector<std::string_view> pieces;
    edits.pieces(pieces);
    std::string whole, appended;
    for (const auto piece : pieces) whole += piece;
    edits.append_to(appended);
    EXPECT_EQ(whole, appended);
    EXPECT_EQ(whole.size(), edits.total_size());
    RequestScan again;
    const auto result = scan(whole, model::Api::ChatCompletions, {}, again);
    if (!result) ADD_FAILURE() << result.error().message << " " << whole;
    return whole;
  }
  std::string body;
  RequestScan out;
};

TEST(Splice, replaces_the_model_name_and_nothing_else) {
  const Spliced s(R"({ "model" : "a" , "messages":[{}], "x":1e400 })");
  EXPECT_EQ(s.with([](Splice& p) { p.set_model("b\"\\\n"); }),
            R"({ "model" : "b\"\\\n" , "messages":[{}], "x":1e400 })");
}

TEST(Splice, an_empty_splice_is_the_body_in_one_piece) {
  const Spliced s(R"({"model":"a","messages":[{}]})");
  Splice splice(s.body, s.out);
  EXPECT_TRUE(splice.empty());
  std::vector<std::string_view> pieces;
  const Edits edits = splice.edits();
  edits.pieces(pieces);
  ASSERT_EQ(pieces.size(), 1u);
  EXPECT_EQ(pieces[0].data(), s.body.data());
}

TEST(Splice, asks_for_usage_in_every_state_of_stream_options) {
  const auto asked = [](std::string_view options) {
    const Spliced s(R"({"model":"a","messages":[{}])" + std::string(options) + "}");
    return s.with([](Splice& p) { p.include_usage(); });
  };
  const std::string head = R"({"model":"a","messages":[{}],"stream_options":)";
  EXPECT_EQ(asked(""), head + R"({"include_usage":true}})");
  EXPECT_EQ(asked(R"(,"stream_options":null)"), head + R"({"include_usage":true}})");
  EXPECT_EQ(asked(R"(,"stream_options":{ })"), head + R"({ "include_usage":true}})");
  EXPECT_EQ(asked(R"(,"stream_options":{"x":[1]})"), head + R"({"x":[1],"include_usage":true}})");
  EXPECT_EQ(asked(R"(,"stream_options":{"include_usage":false,"x":1})"),
            head + R"({"include_usage":true,"x":1}})");
  EXPECT_EQ(asked(R"(,"stream_options":{"include_usage":null})"),
            head + R"({"include_usage":true}})");
  EXPECT_EQ(asked(R"(,"stream_options":{"include_usage": true})"),
            head + R"({"include_usage": true}})");
  EXPECT_EQ(asked(R"(,"stream_options":{"include_usage":false,"continuous_usage_stats":true})"),
            head + R"({"include_usage":true}})")
      << "else usage would come with every chunk";
}

TEST(Splice, takes_members_out_with_one_comma_each_wherever_they_stand) {
  const auto without = [](std::string body, std::vector<Key> keys) {
    const Spliced s(std::move(body));
    Splice splice(s.body, s.out);
    for (const Key key : keys) splice.remove(key);
    std::string out;
    splice.edits().append_to(out);
    return out;
  };
  const std::string first = R"({"user":"u" , "cache_salt":"s","model":"a","messages":[{}]})";
  EXPECT_EQ(without(first, {Key::User}), R"({ "cache_salt":"s","model":"a","messages":[{}]})");
  EXPECT_EQ(without(first, {Key::CacheSalt}), R"({"user":"u" ,"model":"a","messages":[{}]})");
  EXPECT_EQ(without(first, {Key::CacheSalt, Key::User}), R"({"model":"a","messages":[{}]})");
  EXPECT_EQ(without(first, {Key::User, Key::CacheSalt, Key::Model}), R"({"messages":[{}]})");
  EXPECT_EQ(without(first, {Key::Messages}), R"({"user":"u" , "cache_salt":"s","model":"a"})");
  EXPECT_EQ(without(first, {Key::User, Key::Messages}), R"({ "cache_salt":"s","model":"a"})");
  EXPECT_EQ(without(first, {Key::User, Key::CacheSalt, Key::Model, Key::Messages}), "{}");
  EXPECT_EQ(without(first, {Key::N}), first);
}

TEST(Splice, adds_to_what_removal_left_empty) {
  const Spliced s(R"({"model":"a","messages":[{}]})");
  Splice splice(s.body, s.out);
  splice.remove(Key::Model);
  splice.remove(Key::Messages);
  splice.add("x", "1");
  splice.add("y", "[2]");
  std::string out;
  splice.edits().append_to(out);
  EXPECT_EQ(out, R"({"x":1,"y":[2]})");
}

TEST(Splice, the_last_word_about_a_key_counts) {
  const Spliced s(R"({"model":"a","messages":[{}],"priority":1})");
  EXPECT_EQ(s.with([](Splice& p) {
              p.set_priority(2);
              p.remove(Key::Priority);
              p.set_priority(-3);
              p.set_model("b");
              p.add("model", "\"c\"");
            }),
            R"({"model":"c","messages":[{}],"priority":-3})");
}

std::string space() {
  return *rc::gen::element<std::string>("", "", " ", "\n  ", "\t\r\n");
}

// A body with the given members in random order and white space; keys that nobody reads may be
// doubled and hold what a tree parser would change.
std::string draw_body(std::vector<std::string> members) {
  members.push_back(R"("model":"a\u0062/\/")");
  members.push_back(R"("messages":[{"role":"user","content":"hi\n"}])");
  const int others = *rc::gen::inRange(0, 3);
  for (int i = 0; i < others; ++i) members.push_back(R"("x)" + std::to_string(i) + R"(":1.50e+2)");
  std::string out = space() + "{";
  bool first = true;
  while (!members.empty()) {
    const auto at = *rc::gen::inRange<std::size_t>(0, members.size());
    out += (first ? "" : ",") + space() + members[at] + space();
    members.erase(members.begin() + static_cast<std::ptrdiff_t>(at));
    first = false;
  }
  return out + "}" + space();
}

std::vector<std::string> draw_members() {
  const std::vector<std::vector<std::string>> kinds = {
      {R"("stream":true)", R"("stream" : false)", R"("stream":null)"},
      {R"("stream_options":null)", R"("stream_options":{ })", R"("stream_options":{"y":1})",
       R"("stream_options":{"include_usage" :false , "y":1})",
       R"("stream_options":{"include_usage":true})"},
      {R"("cache_salt":"mine")", R"("cache_salt":null)"},
      {R"("priority":5)", R"("priority":null)"},
      {R"("user":"u")"}};
  std::vector<std::string> members;
  for (const auto& kind : kinds) {
    if (*rc::gen::arbitrary<bool>()) members.push_back(*rc::gen::elementOf(kind));
  }
  return members;
}

RC_GTEST_PROP(Splice, means_the_original_with_exactly_the_changes, ()) {
  const Spliced s(draw_body(draw_members()));
  Json expected = Json::parse(s.body);
  Splice splice(s.body, s.out);
  if (*rc::gen::arbitrary<bool>()) {
    splice.set_model("new \"name\"");
    expected["model"] = "new \"name\"";
  }
  if (*rc::gen::arbitrary<bool>()) {
    splice.set_stream(true);
    expected["stream"] = true;
  }
  if (*rc::gen::arbitrary<bool>()) {
    splice.include_usage();
    if (!expected.contains("stream_options") || expected["stream_options"].is_null()) {
      expected["stream_options"] = Json::object();
    }
    expected["stream_options"]["include_usage"] = true;
  }
  switch (*rc::gen::inRange(0, 3)) {
    case 0: splice.set_cache_salt("ours"); expected["cache_salt"] = "ours"; break;
    case 1: splice.remove(Key::CacheSalt); expected.erase("cache_salt"); break;
    default: break;
  }
  switch (*rc::gen::inRange(0, 3)) {
    case 0: splice.set_priority(-7); expected["priority"] = -7; break;
    case 1: splice.remove(Key::Priority); expected.erase("priority"); break;
    default: break;
  }
  if (*rc::gen::arbitrary<bool>()) {
    splice.remove(Key::User);
    expected.erase("user");
  }
  if (*rc::gen::arbitrary<bool>()) {
    splice.add("return_token_ids", "true");
    expected["return_token_ids"] = true;
  }
  const Edits edits = splice.edits();
  std::string out;
  edits.append_to(out);
  RC_ASSERT(out.size() == edits.total_size());
  RC_ASSERT(nlohmann::json::parse(out) == nlohmann::json(expected));
  // Members that nobody touched are still there as they were written.
  for (const auto* raw : {R"("messages":[{"role":"user","content":"hi\n"}])"}) {
    RC_ASSERT(out.find(raw) != std::string::npos);
  }
  // The result is a request that we would take ourselves.
  RequestScan again;
  RC_ASSERT(scan(out, model::Api::ChatCompletions, {}, again).has_value());
}

RC_GTEST_PROP(Splice, untouched_stretches_are_views_into_the_original, ()) {
  const Spliced s(draw_body(draw_members()));
  Splice splice(s.body, s.out);
  splice.set_model("z");
  splice.include_usage();
  splice.remove(Key::User);
  const Edits edits = splice.edits();
  std::vector<std::string_view> pieces;
  edits.pieces(pieces);
  const char* last = s.body.data();
  for (const auto piece : pieces) {
    if (piece.data() < s.body.data() || piece.data() >= s.body.data() + s.body.size()) continue;
    RC_ASSERT(piece.data() >= last);  // in order, and never twice
    last = piece.data() + piece.size();
  }
}

TEST(Edits, keep_the_order_of_insertions_at_one_place) {
  Edits edits("abc");
  edits.replace({1, 1}, "1");
  edits.replace({3, 3}, "9");
  edits.replace({1, 1}, "2");
  edits.replace({1, 2}, "X");
  std::string out;
  edits.append_to(out);
  EXPECT_EQ(out, "a12Xc9");
  EXPECT_EQ(edits.total_size(), 6u);
}

}  // namespace
}  // namespace signalbox::json
