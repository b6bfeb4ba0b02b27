// SPDX-License-Identifier: Apache-2.0
// Goal: plain answers are held until they are known to be whole, streams that we asked for become
// the plain answer that the client asked for, and no half or failed answer counts as one. Method:
// recorded bodies and streams; the assembled answer is compared with the plain one as JSON.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>

#include "io/gateway/answer_relay.h"
#include "io/gateway/relay_run_for_test.inc"
#include "io/http/transcript.h"

namespace signalbox::gateway {
namespace {

using http::transcript::pieces;
using model::Api;
using model::AttemptResult;
using nlohmann::json;

Came plain(int status = 200, bool whole = true) {
  Came came;
  came.status = status;
  came.event_stream = false;
  came.whole = whole;
  return came;
}

RelayPlan plan_of(Api api) {
  RelayPlan plan;
  plan.api = api;
  return plan;
}

RelayPlan assembling(Api api = Api::ChatCompletions, int choices = 1) {
  RelayPlan plan;
  plan.api = api;
  plan.choices = choices;
  plan.assemble = true;
  return plan;
}

TEST(AnswerHold, holds_a_whole_answer_byte_for_byte) {
  const std::vector<std::pair<Api, std::string>> answers = {
      {Api::ChatCompletions, recorded_body(kLlama, "chat nonstream")},
      {Api::Completions, recorded_body(kLlama, "v1/completions nonstream")},
      {Api::ChatCompletions, recorded_body(kLlama, "n 2")},
      {Api::Responses, recorded_body(kLlama, "responses")},
      {Api::Messages, recorded_body(kLlama, "messages (anthropic)")},
      {Api::Completions, recorded_body(kVllm, "completions list of 2 prompts n=1")},
      {Api::ChatCompletions, recorded_body(kVllm, "max_completion_tokens, n=2")},
      {Api::Embeddings, R"({"object":"list","data":[{"embedding":[0.1,1e-7]}],"model":"m",)"
                        R"("usage":{"prompt_tokens":4,"total_tokens":4}})"},
      {Api::CountTokens, R"({"input_tokens": 34})"},
  };
  for (const auto& [api, body] : answers) {
    ASSERT_FALSE(body.empty());
    for (const std::size_t size : {1ul, 100ul, 100000ul}) {
      const RelayRun run = run_relay(plan_of(api), pieces(body, {size}), plain());
      EXPECT_EQ(run.result, AttemptResult::Ok) << body;
      EXPECT_EQ(run.held, body);
      EXPECT_EQ(run.out, "");
      EXPECT_EQ(run.tokens, 1);
      EXPECT_GT(run.usage.prompt_tokens, 0) << body;
    }
  }
}

TEST(AnswerHold, shows_the_public_name_and_changes_nothing_else) {
  const std::string body = recorded_body(kLlama, "chat nonstream");
  RelayPlan plan = plan_of(Api::ChatCompletions);
  plan.model = "public";
  const RelayRun run = run_relay(plan, pieces(body, {64}), plain());
  std::string expected = body;
  const std::string name = "\"smollm2-135m\"";
  ASSERT_NE(expected.find(name), std::string::npos);
  expected.replace(expected.find(name), name.size(), "\"public\"");
  EXPECT_EQ(run.held, expected);
}

TEST(AnswerHold, half_an_answer_is_truncated_wherever_it_was_cut) {
  const std::string body = recorded_body(kLlama, "chat nonstream");
  for (std::size_t size = 0; size < body.size(); ++size) {
    // The framing may be in good order: an engine that dies behind a proxy.
    ASSERT_EQ(run_relay(plan_of(Api::ChatCompletions), {body.substr(0, size)}, plain()).result,
              AttemptResult::Truncated)
        << size;
  }
  EXPECT_EQ(run_relay(plan_of(Api::ChatCompletions), {body}, plain(200, false)).result,
            AttemptResult::Truncated);
}

TEST(AnswerHold, garbage_and_answers_without_an_end_are_truncated) {
  const auto verdict = [](const std::string& body) {
    return run_relay(plan_of(Api::ChatCompletions), {body}, plain()).result;
  };
  EXPECT_EQ(verdict("<html>oops</html>"), AttemptResult::Truncated);
  EXPECT_EQ(verdict("null"), AttemptResult::Truncated);
  EXPECT_EQ(verdict("[]"), AttemptResult::Truncated);
  EXPECT_EQ(verdict("{}"), AttemptResult::Truncated);
  EXPECT_EQ(verdict(R"({"choices":[]})"), AttemptResult::Truncated);
  EXPECT_EQ(verdict(R"({"choices":[{"message":{"content":"a"},"finish_reason":null}]})"),
            AttemptResult::Truncated);
  EXPECT_EQ(verdict(R"({"choices":[{"finish_reason":"stop"},{"finish_reason":null}]})"),
            AttemptResult::Truncated);
  EXPECT_EQ(verdict(R"({"choices":[{"finish_reason":"stop"}]} {})"), AttemptResult::Truncated);
}

TEST(AnswerHold, an_error_in_the_place_of_an_answer_is_judged_by_the_status_that_it_names) {
  const std::vector<std::tuple<std::string, int, AttemptResult>> errors = {
      {R"("code":500)", 500, AttemptResult::ServerError},
      {R"("code":"503")", 503, AttemptResult::ServerError},
      {R"("code":400)", 400, AttemptResult::ClientError},
      {R"("code":"429")", 429, AttemptResult::Throttled},
      {R"("code":"server_error")", 502, AttemptResult::ServerError},
      {R"("code":null)", 502, AttemptResult::ServerError},
      {R"("code":{"code":400})", 502, AttemptResult::ServerError},
      {R"("code":200)", 502, AttemptResult::ServerError},
      {R"("code":307)", 502, AttemptResult::ServerError},
      {R"("code":600)", 502, AttemptResult::ServerError},
      {R"("code":-400)", 502, AttemptResult::ServerError},
      {R"("code":1e400)", 502, AttemptResult::ServerError},
      {R"("code":"400 ")", 502, AttemptResult::ServerError},
      {R"("param":null)", 502, AttemptResult::ServerError}};
  for (const auto& [code, status, result] : errors) {
    const std::string body = R"({"error":{"message":"m",)" + code + "}}";
    RelayRun run = run_relay(plan_of(Api::ChatCompletions), {body}, plain());
    EXPECT_EQ(run.result, result) << body;
    EXPECT_EQ(run.status, status) << body;
    EXPECT_EQ(run.held, body);
    // A stream that begins with it, and one of which nothing was shown, say the same.
    RelayPlan streams = plan_of(Api::ChatCompletions);
    streams.client_streams = true;
    for (const RelayPlan& plan : {streams, assembling()}) {
      run = run_relay(plan, {"data: " + body + "\n\ndata: [DONE]\n\n"});
      EXPECT_EQ(run.result, result) << body;
      EXPECT_EQ(run.status, status) << body;
      EXPECT_EQ(run.held, body);
      EXPECT_EQ(run.out, "");
    }
  }
  EXPECT_EQ(run_relay(plan_of(Api::ChatCompletions), {R"({"error":"out of memory"})"}, plain())
                .status,
            502);
}

TEST(AnswerHold, estimates_the_tokens_of_an_answer_that_tells_no_usage) {
  const auto tokens = [](const std::string& choices, const std::string& usage = "") {
    const std::string body =
        R"({"id":"long enough to matter","choices":[)" + choices + "]" + usage + "}";
    const RelayRun run = run_relay(plan_of(Api::ChatCompletions), {body}, plain());
    EXPECT_EQ(run.result, AttemptResult::Ok) << body;
    return run.tokens;
  };
  const auto choice = [](const std::string& message) {
    return R"({"logprobs":{"content":[1,2,3,4,5,6,7,8,9]},"message":{"role":"assistant",)" +
           message + R"(},"finish_reason":"stop"})";
  };
  const std::string text = R"("content":")" + std::string(400, 'x') + "\"";
  EXPECT_EQ(tokens(choice(text)), 100);
  EXPECT_EQ(tokens(choice(text) + "," + choice(text)), 200);
  EXPECT_EQ(tokens(choice(text + R"(,"reasoning_content":"abcdefgh")")), 102);
  EXPECT_EQ(tokens(choice(R"("content":null,"tool_calls":[{"f":"12345678901"}])")), 4);
  EXPECT_EQ(tokens(choice(R"("content":"")")), 1);
  EXPECT_EQ(tokens(R"({"text":"12345678","finish_reason":"stop"})"), 2);
  EXPECT_EQ(tokens(choice(text), R"(,"usage":{"completion_tokens":7})"), 1);
}

TEST(AnswerHold, judges_a_failure_by_its_status_and_keeps_its_words) {
  const std::vector<std::pair<int, AttemptResult>> cases = {
      {400, AttemptResult::ClientError}, {404, AttemptResult::ClientError},
      {422, AttemptResult::ClientError}, {499, AttemptResult::ClientError},
      {429, AttemptResult::Throttled},   {500, AttemptResult::ServerError},
      {501, AttemptResult::ClientError}, {503, AttemptResult::ServerError},
      {302, AttemptResult::Unfit},       {307, AttemptResult::Unfit},
      {199, AttemptResult::ServerError}};
  const std::string body = recorded_body(kVllm, "err max_tokens too big");
  ASSERT_FALSE(body.empty());
  for (const auto& [status, result] : cases) {
    RelayRun run = run_relay(plan_of(Api::ChatCompletions), pieces(body, {10}), plain(status));
    EXPECT_EQ(run.result, result) << status;
    EXPECT_EQ(run.held, body);
    EXPECT_EQ(run.out, "");
    // An error in the clothes of a stream is no stream.
    Came came;
    came.status = status;
    RelayPlan plan = plan_of(Api::ChatCompletions);
    plan.client_streams = true;
    run = run_relay(plan, {body}, came);
    EXPECT_EQ(run.result, result) << status;
    EXPECT_EQ(run.held, body);
    EXPECT_EQ(run.mode, AnswerRelay::Mode::Hold);
  }
  EXPECT_EQ(run_relay(plan_of(Api::ChatCompletions), {body}, plain(400, false)).result,
            AttemptResult::Truncated);
}

TEST(AnswerHold, what_is_too_large_to_hold_passes_in_order) {
  RelayPlan plan = plan_of(Api::Embeddings);
  plan.held_max = 1000;
  const std::string body = R"({"data":")" + std::string(5000, 'e') + "\"}";
  for (const std::size_t size : {1ul, 999ul, 1000ul, 1001ul, 9000ul}) {
    const RelayRun run = run_relay(plan, pieces(body, {size}), plain());
    EXPECT_EQ(run.mode, AnswerRelay::Mode::Pass);
    EXPECT_EQ(run.out, body);
    EXPECT_EQ(run.held, "");
    EXPECT_EQ(run.result, AttemptResult::Ok);
    EXPECT_EQ(run_relay(plan, pieces(body, {size}), plain(200, false)).result,
              AttemptResult::Truncated);
  }
  const std::string fits(1000, 'x');
  EXPECT_EQ(run_relay(plan, {fits}, plain()).mode, AnswerRelay::Mode::Hold);
}

TEST(AnswerHold, what_passes_is_judged_by_its_status_once_it_is_whole) {
  const std::vector<std::pair<int, AttemptResult>> cases = {
      {200, AttemptResult::Truncated},   {400, AttemptResult::ClientError},
      {429, AttemptResult::Throttled},   {500, AttemptResult::ServerError},
      {503, AttemptResult::ServerError}};
  RelayPlan plan = plan_of(Api::ChatCompletions);
  plan.held_max = 1000;
  const std::string body(5000, 'x');
  for (const auto& [status, result] : cases) {
    const RelayRun run = run_relay(plan, pieces(body, {700}), plain(status));
    EXPECT_EQ(run.mode, AnswerRelay::Mode::Pass);
    EXPECT_EQ(run.out, body);
    EXPECT_EQ(run.result, result) << status;
    EXPECT_EQ(run_relay(plan, pieces(body, {700}), plain(status, false)).result,
              AttemptResult::Truncated);
  }
}

TEST(AnswerHold, what_passes_is_counted_renamed_and_judged_like_what_is_held) {
  RelayPlan plan = plan_of(Api::ChatCompletions);
  plan.held_max = 1000;
  plan.model = "asked";
  const auto body = [](const std::string& model, const std::string& finish, bool early) {
    const std::string name = R"("model":")" + model + R"(",)";
    return "{" + (early ? name : "") + R"("choices":[{"index":0,"message":{"content":")" +
           std::string(5000, 'c') + R"("},"finish_reason":)" + finish + "}]," +
           (early ? "" : name) + R"("usage":{"prompt_tokens":777,"completion_tokens":888}})";
  };
  for (const bool early : {true, false}) {
    for (const std::size_t size : {1ul, 7ul, 999ul, 9000ul}) {
      const auto run = run_relay(plan, pieces(body("own", R"("stop")", early), {size}), plain());
      EXPECT_EQ(run.mode, AnswerRelay::Mode::Pass);
      EXPECT_EQ(run.out, body("asked", R"("stop")", early));
      EXPECT_EQ(run.result, AttemptResult::Ok);
      EXPECT_EQ(run.usage.prompt_tokens, 777);
      EXPECT_EQ(run.usage.completion_tokens, 888);
      EXPECT_EQ(run_relay(plan, pieces(body("own", "null", early), {size}), plain()).result,
                AttemptResult::Truncated);
    }
  }
}

TEST(AnswerHold, a_passing_answer_may_have_very_many_choices) {
  constexpr int kChoices = 2048 * 16;
  RelayPlan plan = plan_of(Api::Completions);
  plan.choices = kChoices;
  plan.model = "asked";
  std::string body = R"({"choices":[)";
  for (int i = 0; i < kChoices; ++i) {
    if (i != 0) body += ',';
    body += R"({"index":)" + std::to_string(i) +
            R"(,"text":" word","logprobs":null,"finish_reason":"length","stop_reason":null})";
  }
  body += R"(],"usage":{"prompt_tokens":777,"completion_tokens":888},"model":)";
  const RelayRun run = run_relay(plan, pieces(body + R"("own"})", {16384}), plain());
  EXPECT_EQ(run.mode, AnswerRelay::Mode::Pass);
  EXPECT_EQ(run.out, body + R"("asked"})");
  EXPECT_EQ(run.result, AttemptResult::Ok);
  EXPECT_EQ(run.usage.completion_tokens, 888);
}

TEST(AnswerAssemble, an_answer_beyond_the_room_ends_once_and_says_so) {
  std::string stream;
  for (int i = 0; i < 1000; ++i) {
    stream += R"(data: {"choices":[{"index":0,"delta":{"content":" word"}}]})" "\n\n";
  }
  stream += R"(data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]})" "\n\n"
            "data: [DONE]\n\n";
  RelayPlan plan = assembling();
  plan.assembled_max = 20000;
  EXPECT_EQ(run_relay(plan, {stream}, {}).result, AttemptResult::Ok);
  plan.assembled_max = 3000;
  const RelayRun run = run_relay(plan, {stream}, {});
  EXPECT_EQ(run.result, AttemptResult::Overrun);
  EXPECT_NE(run.held.find("answer_too_large"), std::string::npos) << run.held;
}

TEST(AnswerAssemble, makes_the_plain_answer_of_a_stream) {
  const std::string stream = recorded_stream(kLlama, "chat stream + usage");
  const RelayRun run = run_relay(assembling(), pieces(stream, {33}));
  EXPECT_EQ(run.result, AttemptResult::Ok);
  EXPECT_EQ(run.mode, AnswerRelay::Mode::Assemble);
  EXPECT_EQ(run.out, "");
  EXPECT_EQ(run.tokens, 5);
  EXPECT_EQ(run.usage.completion_tokens, 5);
  const json answer = json::parse(run.held);
  EXPECT_EQ(answer["object"], "chat.completion");
  EXPECT_EQ(answer["choices"][0]["message"]["content"], "1. Red\n2");
  EXPECT_EQ(answer["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(answer["usage"]["completion_tokens"], 5);
  // Read back as the plain answer that it stands for, it is a whole one with the same usage.
  const RelayRun again = run_relay(plan_of(Api::ChatCompletions), {run.held}, plain());
  EXPECT_EQ(again.result, AttemptResult::Ok);
  EXPECT_EQ(again.usage.prompt_tokens, run.usage.prompt_tokens);
  EXPECT_EQ(again.usage.cached_tokens, run.usage.cached_tokens);
}

TEST(AnswerAssemble, keeps_choices_and_text_completions_apart) {
  const RelayRun two =
      run_relay(assembling(Api::ChatCompletions, 2), {recorded_stream(kLlama, "n 2 stream")});
  EXPECT_EQ(two.result, AttemptResult::Ok);
  EXPECT_EQ(json::parse(two.held)["choices"].size(), 2u);
  const RelayRun text = run_relay(
      assembling(Api::Completions),
      {recorded_stream(kVllm, "completions stream token ids return_token_ids")});
  EXPECT_EQ(text.result, AttemptResult::Ok);
  EXPECT_EQ(json::parse(text.held)["choices"][0]["text"], "oteW closed");
}

RC_GTEST_PROP(AnswerAssembleLaw, pieces_of_any_size_make_the_same_answer, ()) {
  static const std::string stream = recorded_stream(kLlama, "timings_per_token stream");
  const auto sizes =
      *rc::gen::container<std::vector<std::size_t>>(rc::gen::inRange<std::size_t>(1, 700));
  const RelayRun one = run_relay(assembling(), {stream});
  const RelayRun many = run_relay(assembling(), pieces(stream, sizes));
  RC_ASSERT(one.result == AttemptResult::Ok);
  RC_ASSERT(many.held == one.held);
  RC_ASSERT(many.tokens == one.tokens);
}

TEST(AnswerAssemble, an_answer_without_a_reason_for_its_end_is_none) {
  for (const std::string finish : {"", R"(,"finish_reason":null)"}) {
    const std::string stream =
        R"(data: {"choices":[{"index":0,"delta":{"content":"a"})" + finish + "}]}\n\n";
    const RelayRun run = run_relay(assembling(), {stream + "data: [DONE]\n\n"});
    EXPECT_EQ(run.result, AttemptResult::Truncated);
  }
}

TEST(AnswerAssemble, shows_the_public_name) {
  RelayPlan plan = assembling();
  plan.model = "public";
  const RelayRun run = run_relay(plan, {recorded_stream(kLlama, "chat stream + usage")});
  EXPECT_EQ(json::parse(run.held)["model"], "public");
}

TEST(AnswerAssemble, a_stream_without_its_end_makes_no_answer) {
  const std::string stream = recorded_stream(kLlama, "chat stream + usage");
  const std::string cut = stream.substr(0, stream.find("\"length\""));
  const RelayRun run = run_relay(assembling(), {cut});
  EXPECT_EQ(run.result, AttemptResult::Truncated);
  EXPECT_EQ(run.held, "");
  EXPECT_EQ(run.out, "");
}

TEST(AnswerAssemble, an_error_event_is_what_is_held) {
  const std::string error = R"({"error":{"message":"m"}})";
  const std::string stream = recorded_stream(kLlama, "chat stream + usage");
  const std::string begin = stream.substr(0, stream.find("\n\n") + 2);
  for (const std::string& before : {std::string(), begin}) {
    const RelayRun run =
        run_relay(assembling(), {before + "data: " + error + "\n\ndata: [DONE]\n\n"});
    EXPECT_EQ(run.result, AttemptResult::ServerError);
    EXPECT_EQ(run.held, error);
    EXPECT_EQ(run.out, "");
  }
}

TEST(AnswerAssemble, events_that_cannot_be_read_or_held_make_no_answer) {
  const std::string stream = recorded_stream(kLlama, "chat stream + usage");
  EXPECT_EQ(run_relay(assembling(), {"data: garbage\n\n" + stream}).result,
            AttemptResult::Truncated);
  RelayPlan small = assembling();
  small.assembled_max = 100;
  EXPECT_EQ(run_relay(small, {stream}).result, AttemptResult::Overrun);
  RelayPlan endless = assembling();
  endless.event_max = 100;
  EXPECT_EQ(run_relay(endless, pieces(stream, {90})).held, run_relay(assembling(), {stream}).held);
  endless.assembled_max = 150;
  EXPECT_EQ(run_relay(endless, pieces(stream, {90})).result, AttemptResult::Overrun);
}

TEST(AnswerAssemble, a_plain_answer_where_a_stream_was_asked_is_held) {
  const std::string body = recorded_body(kLlama, "chat nonstream");
  const RelayRun run = run_relay(assembling(), {body}, plain());
  EXPECT_EQ(run.result, AttemptResult::Ok);
  EXPECT_EQ(run.mode, AnswerRelay::Mode::Hold);
  EXPECT_EQ(run.held, body);
}

}  // namespace
}  // namespace signalbox::gateway
