// SPDX-License-Identifier: Apache-2.0
// Goal: a page of ours is drawn with what it says; a page of anybody else is refused with a
// sentence or drawn with blanks, and never breaks the command. Method: examples, and a law over
// pages of which one value was replaced by any other.
#include "app/admin_page.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>

namespace signalbox::app {
namespace {

using nlohmann::json;

constexpr View kViews[] = {View::Models, View::Pools, View::Endpoints, View::Decisions,
                           View::Explained};

const std::string kFleet = R"({
  "totals": {"arrived": 7, "in_flight": 1, "waiting": 0, "retries": 2},
  "models": [{"name": "big", "context_tokens": 8192}],
  "pools": [{"name": "fast", "model": "big", "engine": "vllm",
             "accuracy": {"ttft": {"count": 3, "median_error": 0.137},
                          "e2e": {"count": 3, "median_error": 0.414}},
             "endpoints": [{"address": "127.0.0.1:7001", "kind": "vllm", "standing": "in",
                            "unreachable": true, "serves": false, "ours": 4, "queued": 1,
                            "others": 0, "limit": 64, "wait_seconds": 0.02, "step_seconds": 0.011,
                            "kv_usage": 0.03, "cached_tokens": 31419, "factor": 0.94,
                            "since_observed_seconds": 0.8}]}]})";

const std::string kDecisions = R"({
  "decisions": [{"decision": 532, "request": "req-1", "attempt": 1, "model": "big",
                 "kind": "placed", "endpoint": "127.0.0.1:7001", "queued_ms": 3,
                 "chosen_index": 0, "runner_up_index": 1, "sentence": "b would have won",
                 "predicted": {"ttft": 0.038, "e2e": 0.482, "prompt_tokens": 5969,
                               "cached_tokens": 5872, "output_tokens": 40},
                 "actual": {"ttft": 0.04, "e2e": 0.641, "prompt_tokens": 5968,
                            "cached_tokens": 5856, "output_tokens": 64, "result": "ok"},
                 "candidates": [{"endpoint": "127.0.0.1:7001",
                                 "terms": {"total": 0.5096, "wait": 0.0163},
                                 "inputs": {"in_flight": 4, "cached": 5872}}],
                 "refused": [{"count": 2, "reason": "full", "example": "127.0.0.1:7002"}]}]})";

const std::string& page_of(View view) {
  return view == View::Decisions || view == View::Explained ? kDecisions : kFleet;
}

bool says(const Result<std::string>& text, std::string_view what) {
  return text && text->find(what) != std::string::npos;
}

TEST(AdminPage, draws_what_a_page_of_ours_says) {
  EXPECT_TRUE(says(page_table(View::Models, kFleet), "8192"));
  EXPECT_TRUE(says(page_table(View::Pools, kFleet), "13.7"));
  EXPECT_TRUE(says(page_table(View::Endpoints, kFleet), "in,unreachable,other model"));
  EXPECT_TRUE(says(page_table(View::Decisions, kDecisions), "req-1"));
  for (const char* word : {"0.5096", "5968", "2 endpoint(s) full, such as 127.0.0.1:7002",
                           "b would have won", "->  127.0.0.1:7001"}) {
    EXPECT_TRUE(says(page_table(View::Explained, kDecisions), word)) << word;
  }
  const auto screen = page_screen("h:1", kFleet, kDecisions);
  for (const char* word : {"signalbox  h:1   arrived 7", "31419", "req-1"}) {
    EXPECT_TRUE(says(screen, word)) << word;
  }
  EXPECT_EQ(json::parse(*page_json(View::Endpoints, kFleet))[0]["pool"], "fast");
  EXPECT_EQ(json::parse(*page_json(View::Pools, kFleet)), json::parse(kFleet)["pools"]);
  EXPECT_EQ(json::parse(*page_json(View::Explained, kDecisions)), json::parse(kDecisions));
}

TEST(AdminPage, refuses_what_is_no_page_of_ours) {
  const std::string deep(200'000, '[');
  for (const std::string& body :
       {std::string(), std::string("hello"), std::string("{}"), std::string("null"),
        std::string("[]"), std::string("5"), std::string(R"({"status":"success"})"),
        std::string(R"({"decisions":5,"pools":"x","models":[1,2],"totals":[]})"),
        std::string(R"({"decisions":[null],"pools":[{"endpoints":[{},5]}],"models":[{}]})"),
        std::string(R"({"decisions":[[]],"pools":[{}],"models":[]})"), deep,
        R"({"decisions":[],"models":[],"pools":[],"x":)" + deep + std::string(200'000, ']') +
            "}"}) {
    for (const View view : kViews) {
      if (view == View::Models && body.starts_with(R"({"decisions":[[]])")) continue;
      const auto table = page_table(view, body);
      ASSERT_FALSE(table) << body.substr(0, 80);
      EXPECT_NE(table.error().message.find("is not the admin API"), std::string::npos);
      EXPECT_FALSE(page_json(view, body));
    }
    EXPECT_FALSE(page_screen("h:1", body, kDecisions));
    EXPECT_FALSE(page_screen("h:1", kFleet, body));
  }
}

TEST(AdminPage, brackets_inside_names_are_no_depth) {
  const std::string name = std::string(200, '[') + "\\\"" + std::string(200, '{');
  const std::string fleet = R"({"models":[{"name":")" + name + R"("}],"pools":[]})";
  EXPECT_TRUE(says(page_table(View::Models, fleet), std::string(200, '[')));
}

TEST(AdminPage, leaves_blank_what_is_not_told) {
  const std::string fleet = R"({"models":[{}],"pools":[{"endpoints":[{}]}]})";
  const std::string decisions = R"({"decisions":[{},{"candidates":[{}]}]})";
  for (const View view : {View::Models, View::Pools, View::Endpoints}) {
    EXPECT_TRUE(page_table(view, fleet));
  }
  EXPECT_TRUE(page_table(View::Decisions, decisions));
  EXPECT_TRUE(page_table(View::Explained, decisions));
  EXPECT_TRUE(page_screen("h:1", fleet, decisions));
}

TEST(AdminPage, sends_no_control_characters_to_a_terminal) {
  const std::string name = R"("\u001b[2J\u001b]0;pwn\u0007\n")";
  const std::string fleet = R"({"models":[{"name":)" + name + R"(}],"pools":[]})";
  const auto table = page_table(View::Models, fleet);
  ASSERT_TRUE(table);
  EXPECT_EQ(table->find('\x1b'), std::string::npos);
  EXPECT_TRUE(says(table, "\\x1b[2J"));
}

// Every value of a page, as paths.
void paths(const json& value, const json::json_pointer& at, std::vector<json::json_pointer>& out) {
  out.push_back(at);
  if (value.is_object()) {
    for (const auto& [key, inner] : value.items()) paths(inner, at / key, out);
  } else if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i) paths(value[i], at / i, out);
  }
}

RC_GTEST_PROP(AdminPageLaw, a_page_with_any_value_of_another_kind_breaks_nothing, ()) {
  const View view = *rc::gen::elementOf(std::vector<View>(std::begin(kViews), std::end(kViews)));
  json page = json::parse(page_of(view));
  for (int changes = *rc::gen::inRange(1, 4); changes > 0; --changes) {
    std::vector<json::json_pointer> places;
    paths(page, json::json_pointer(), places);
    const auto& place = places[*rc::gen::inRange<std::size_t>(0, places.size())];
    page[place] = json::parse(*rc::gen::element<std::string>(
        "null", "true", "-1", "1e308", "\"text\"", "\"\"", "[]", "{}", "[null]", "[{}]", "[[]]",
        R"({"endpoint":{"a":[]}})", "18446744073709551615"));
  }
  const std::string body = page.dump();
  const auto table = page_table(view, body);
  const auto text = page_json(view, body);
  RC_ASSERT(table.has_value() == text.has_value());
  if (!table) RC_ASSERT(!table.error().message.empty());
  const bool fleet = page_of(view) == kFleet;
  const auto screen = page_screen("h:1", fleet ? body : kFleet, fleet ? kDecisions : body);
  RC_ASSERT(screen.has_value() == table.has_value());
}

}  // namespace
}  // namespace signalbox::app
