// SPDX-License-Identifier: Apache-2.0
// Goal: whole answers are read rightly, and those that pass in pieces alike. Method: recorded
// answers, and any answers cut anywhere.
#include "io/json/answer_skeleton.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "io/json/answer_reader.h"
#include "io/json/recorded_for_test.inc"

namespace signalbox::json {
namespace {

using model::Api;

TEST(AnswerReader, reads_recorded_answers) {
  const std::string llama = body(kLlama, "chat nonstream");
  const Answer a = read_answer(Api::ChatCompletions, llama);
  EXPECT_TRUE(a.complete());
  EXPECT_EQ(a.choices, 1);
  EXPECT_EQ(a.model.of(llama), R"("smollm2-135m")");
  EXPECT_EQ(a.usage.prompt_tokens, 34);
  EXPECT_EQ(a.usage.cached_tokens, 24);
  EXPECT_EQ(a.usage.completion_tokens, 8);
  EXPECT_EQ(a.timings.prefill_tokens, 10);
  const Answer two = read_answer(Api::ChatCompletions, body(kVllm, "max_completion_tokens, n=2"));
  EXPECT_TRUE(two.complete());
  EXPECT_EQ(two.choices, 2);
  EXPECT_EQ(two.usage.completion_tokens, 4);
  const Answer messages = read_answer(Api::Messages, body(kLlama, "messages (anthropic)"));
  EXPECT_TRUE(messages.complete());
  EXPECT_EQ(messages.usage.prompt_tokens, 34);
  EXPECT_EQ(messages.usage.cached_tokens, 24);
  const Answer responses = read_answer(Api::Responses, body(kLlama, "responses"));
  EXPECT_TRUE(responses.complete());
  EXPECT_EQ(responses.usage.prompt_tokens, 31);
  EXPECT_EQ(responses.usage.completion_tokens, 3);
  const Answer error = read_answer(Api::ChatCompletions, body(kLlama, "top_logprobs w/o logprobs"));
  EXPECT_TRUE(error.valid && error.error);
  EXPECT_FALSE(error.complete());
}

TEST(AnswerReader, half_an_answer_is_not_valid) {
  const std::string whole = body(kLlama, "chat nonstream");
  for (std::size_t n = 0; n < whole.size(); ++n) {
    ASSERT_FALSE(read_answer(Api::ChatCompletions, std::string_view(whole).substr(0, n)).valid);
  }
}

TEST(AnswerReader, an_answer_without_its_ends_is_not_complete) {
  EXPECT_FALSE(read_answer(Api::ChatCompletions, R"({"choices":[]})").complete());
  EXPECT_FALSE(
      read_answer(Api::ChatCompletions, R"({"choices":[{"finish_reason":null}]})").complete());
  EXPECT_FALSE(read_answer(Api::Messages, R"({"stop_reason":null})").complete());
  EXPECT_TRUE(
      read_answer(Api::Embeddings, R"({"data":[],"usage":{"prompt_tokens":3}})").complete());
  EXPECT_EQ(read_answer(Api::CountTokens, R"({"input_tokens":14})").usage.prompt_tokens, 14);
}

// Fed in pieces of `step` bytes, with the model's name replaced.
std::string passed(AnswerSkeleton& skeleton, std::string_view body, std::size_t step) {
  std::string out;
  for (std::size_t at = 0; at < body.size(); at += step) {
    std::string_view data = body.substr(at, step);
    while (!data.empty()) {
      const bool model = skeleton.in_model();
      const std::size_t size = skeleton.feed(data);
      if (!model) out += data.substr(0, size);
      else if (!skeleton.in_model()) out += "\"asked\"";
      data.remove_prefix(size);
    }
  }
  return out;
}

// The facts of an answer as one line.
std::string facts(const Answer& a) {
  const nlohmann::json all = {
      a.valid, a.error, a.choices, a.finished, a.usage.prompt_tokens, a.usage.cached_tokens,
      a.usage.completion_tokens, a.timings.queue.count(), a.timings.prefill.count(),
      a.timings.decode.count(), a.timings.prefill_tokens};
  return all.dump();
}

constexpr Api kApis[] = {Api::ChatCompletions, Api::Completions, Api::Embeddings,
                         Api::Messages,        Api::CountTokens, Api::Responses};

TEST(AnswerSkeleton, says_of_a_passing_answer_what_the_whole_one_says) {
  const std::string body =
      R"({ "id":"c\"}{", "data":[[1,{"model":"x"}],"]"], "choices":[{"index":0,"message":)"
      R"({"content":"a\\","model":"y","finish_reason":"z"},"finish_reason":"stop"},)"
      R"({"finish_reason":null}, {"finish_reason":"length"}], "model" : "o\"wn", "error":null,)"
      R"("usage":{"prompt_tokens":777,"prompt_tokens_details":{"cached_tokens":5},)"
      R"("completion_tokens":8},"timings":{"prompt_ms":1.5}})";
  const Answer whole = read_answer(Api::ChatCompletions, body);
  ASSERT_TRUE(whole.valid);
  EXPECT_EQ(whole.choices, 3);
  EXPECT_EQ(whole.finished, 2);
  EXPECT_EQ(whole.usage.prompt_tokens, 777);
  std::string renamed = body;
  renamed.replace(renamed.find(R"("o\"wn")"), 7, R"("asked")");
  for (std::size_t step = 1; step <= body.size(); ++step) {
    AnswerSkeleton skeleton(Api::ChatCompletions);
    EXPECT_EQ(passed(skeleton, body, step), renamed) << step;
    ASSERT_EQ(facts(skeleton.answer()), facts(whole)) << step;
  }
}

TEST(AnswerSkeleton, says_of_recorded_answers_of_every_api_what_the_whole_ones_say) {
  const std::vector<std::pair<Api, std::string>> answers = {
      {Api::ChatCompletions, body(kLlama, "chat nonstream")},
      {Api::ChatCompletions, body(kLlama, "top_logprobs w/o logprobs")},
      {Api::ChatCompletions, body(kVllm, "max_completion_tokens, n=2")},
      {Api::Completions, body(kLlama, "v1/completions nonstream")},
      {Api::Completions, body(kVllm, "completions list of 2 prompts n=1")},
      {Api::Embeddings, body(kLlama, "embeddings")},
      {Api::Messages, body(kLlama, "messages (anthropic)")},
      {Api::CountTokens, body(kLlama, "input_tokens")},
      {Api::Responses, body(kLlama, "responses")}};
  for (const auto& [api, text] : answers) {
    const Answer whole = read_answer(api, text);
    ASSERT_TRUE(whole.valid) << text;
    for (std::size_t step = 1; step <= text.size(); ++step) {
      AnswerSkeleton skeleton(api);
      EXPECT_FALSE(passed(skeleton, text, step).empty());
      ASSERT_EQ(facts(skeleton.answer()), facts(whole)) << text << ' ' << step;
    }
  }
}

// An object of members that count in some API, with the values that they may have and others.
std::string any_answer() {
  const std::vector<std::string> keys = {
      "choices", "usage", "timings", "metrics", "model",        "error",
      "status",  "id",    "data",    "output",  "input_tokens", "stop_reason"};
  const std::vector<std::string> values = {
      R"("completed")", R"("failed")", R"("")", R"("end_turn")", "null", "false", "0", "7", "[]",
      R"({"prompt_tokens":1,"output_tokens":3,"input_tokens_details":{"cached_tokens":1}})",
      R"({"input_tokens":9,"cache_read_input_tokens":4,"completion_tokens":5})",
      R"({"cache_n":1,"prompt_n":2,"predicted_n":3,"prompt_ms":4.5,"predicted_ms":6})",
      R"({"queue_time_ms":1,"time_to_first_token_ms":2,"generation_time_ms":3})",
      R"([{"finish_reason":"stop"},{"finish_reason":""},{"finish_reason":"","x":[{}]},3,"s"])",
      R"([{"message":{"finish_reason":"a"},"finish_reason":null},[{"finish_reason":"b"}],["c"]])",
      R"([{"finish_reason":"\"","finish_reason":"","z":"}"},{"finish_reason":["stop"]}])"};
  std::string out = "{";
  const auto count = *rc::gen::inRange(0, 8);
  for (int i = 0; i < count; ++i) {
    if (i != 0) out += ", ";
    out += '"' + *rc::gen::elementOf(keys) + "\":" + *rc::gen::elementOf(values);
  }
  return out + "}";
}

RC_GTEST_PROP(AnswerSkeleton, says_of_any_answer_what_the_whole_one_says, ()) {
  const std::string text = any_answer();
  const Api api = *rc::gen::elementOf(std::vector<Api>(std::begin(kApis), std::end(kApis)));
  const auto step = *rc::gen::inRange<std::size_t>(1, text.size() + 1);
  AnswerSkeleton skeleton(api);
  RC_ASSERT(!passed(skeleton, text, step).empty());
  RC_ASSERT(read_answer(api, text).valid);
  RC_ASSERT(facts(skeleton.answer()) == facts(read_answer(api, text)));
}

// As vLLM writes it.
std::string completion_of(int choices, const std::string& last_reason) {
  std::string out = R"({"id":"cmpl-1","object":"text_completion","choices":[)";
  for (int i = 0; i < choices; ++i) {
    if (i != 0) out += ',';
    out += R"({"index":)" + std::to_string(i) + R"(,"text":"a","logprobs":null,"finish_reason":)" +
           (i + 1 < choices ? R"("length")" : last_reason) +
           R"(,"stop_reason":null,"prompt_logprobs":null})";
  }
  return out + R"(],"model":"own","usage":{"prompt_tokens":777,"completion_tokens":888}})";
}

TEST(AnswerSkeleton, has_room_for_any_number_of_choices) {
  constexpr int kChoices = 2048 * 16;
  AnswerSkeleton skeleton(Api::Completions);
  const std::string out = passed(skeleton, completion_of(kChoices, R"("stop")"), 16384);
  EXPECT_TRUE(out.ends_with(
      R"("model":"asked","usage":{"prompt_tokens":777,"completion_tokens":888}})"));
  const Answer answer = skeleton.answer();
  EXPECT_TRUE(answer.complete());
  EXPECT_EQ(answer.choices, kChoices);
  EXPECT_EQ(answer.usage.prompt_tokens, 777);
  EXPECT_EQ(answer.usage.completion_tokens, 888);
  AnswerSkeleton half(Api::Completions);
  passed(half, completion_of(kChoices, "null"), 16384);
  EXPECT_EQ(half.answer().finished, kChoices - 1);
}

TEST(AnswerSkeleton, without_room_tells_a_whole_answer_from_a_broken_one_and_still_renames) {
  const std::string large = R"({"metrics":")" + std::string(AnswerSkeleton::kRoom, 'm') + '"';
  const std::string rest = R"(,"model":"own","usage":{"prompt_tokens":7})";
  for (const Api api : kApis) {
    AnswerSkeleton skeleton(api);
    const std::string choices = R"(,"choices":[{"finish_reason":"stop"}])";
    EXPECT_TRUE(passed(skeleton, large + rest + choices + "}", 5000).ends_with(
        R"(,"model":"asked","usage":{"prompt_tokens":7})" + choices + "}"));
    EXPECT_TRUE(skeleton.answer().complete());
    EXPECT_EQ(skeleton.answer().usage.prompt_tokens, -1);
    for (const std::string_view end : {"", "]", "}}", "} {}", R"(,"a)"}) {
      AnswerSkeleton broken(api);
      passed(broken, large + rest + std::string(end), 5000);
      EXPECT_FALSE(broken.answer().valid) << end;
    }
  }
  AnswerSkeleton unfinished(Api::ChatCompletions);
  passed(unfinished, large + R"(,"choices":[{"finish_reason":null}]})", 5000);
  EXPECT_TRUE(unfinished.answer().valid);
  EXPECT_FALSE(unfinished.answer().complete());
}

TEST(AnswerSkeleton, is_none_of_a_broken_answer) {
  for (const std::string_view body : {"", R"({"a":[1})", R"({"a":1)", R"({"a":"1)", "x", "]",
                                      "[{}]", "{}{}", R"({"a":1 "b":2})"}) {
    AnswerSkeleton skeleton(Api::Embeddings);
    skeleton.feed(body);
    EXPECT_FALSE(skeleton.answer().valid) << body;
  }
}

}  // namespace
}  // namespace signalbox::json
