// SPDX-License-Identifier: Apache-2.0
// Goal: the relay judges every end of a stream, and shows clients an end that they can read.
// Method: recorded and hand-made streams, cut at every byte, ended in every way.
#include "io/gateway/answer_relay.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "io/gateway/relay_samples_for_test.inc"
#include "io/json/chunk_reader.h"

namespace signalbox::gateway {
namespace {

TEST(AnswerRelayVerdict, a_choice_that_nobody_asked_for_neither_ends_an_answer_nor_keeps_it_open) {
  const auto second = [](const std::string& event) {
    return replaced(event, "\"index\":0", "\"index\":1");
  };
  const std::string both = chunk("a") + second(chunk("b"));
  const RelayRun whole = run_relay(streaming(), {both + kFinish});
  EXPECT_EQ(whole.result, AttemptResult::Ok);
  EXPECT_EQ(whole.out, both + kFinish + kDone);
  const RelayRun half = run_relay(streaming(), {both + second(kFinish)});
  EXPECT_EQ(half.result, AttemptResult::Truncated);
  EXPECT_EQ(half.out.find("[DONE]"), half.out.npos);
}

TEST(AnswerRelayVerdict, what_cannot_be_kept_behind_the_end_takes_nothing_from_it) {
  RelayPlan plan = streaming();
  plan.assembled_max = 400 << 10;
  const std::string pad(500 << 10, 'p');
  const std::string usage = "data: {\"choices\":[],\"usage\":{\"x\":\"" + pad + "\"}}\n\n";
  for (const std::string& rest : {": " + pad + "\n\n" + kDone, usage + kDone, usage,
                                  "data: [DONE]\n: " + pad + "\n\n"}) {
    const RelayRun run = run_relay(plan, pieces(chunk("a") + kFinish + rest, {4096}));
    EXPECT_EQ(run.result, AttemptResult::Ok);
    EXPECT_EQ(run.out, chunk("a") + kFinish + kDone);
  }
}

TEST(AnswerRelayVerdict, an_error_too_long_to_keep_is_an_error) {
  RelayPlan plan = streaming();
  plan.assembled_max = 400 << 10;
  const std::string pad(500 << 10, 'p');
  for (const std::string& error :
       {"data: {\"error\":{\"message\":\"" + pad + "\"}}\n\n",
        "event: error\ndata: {\"message\":\"" + pad + "\"}\n\n"}) {
    const RelayRun run = run_relay(plan, pieces(chunk("a") + error + kDone, {4096}));
    EXPECT_EQ(run.result, AttemptResult::StreamError);
    EXPECT_EQ(run.out.find("[DONE]"), run.out.npos);
  }
}

TEST(AnswerRelayVerdict, needs_a_finish_reason_of_every_choice_or_the_apis_own_end) {
  const auto verdict = [](const std::string& bytes, int choices = 1, bool whole = true) {
    RelayPlan plan = streaming();
    plan.choices = choices;
    Came came;
    came.whole = whole;
    return run_relay(plan, {bytes}, came).result;
  };
  EXPECT_EQ(verdict(chunk("a") + kFinish + kDone), AttemptResult::Ok);
  EXPECT_EQ(verdict(chunk("a") + kFinish), AttemptResult::Ok);
  EXPECT_EQ(verdict(chunk("a") + kDone), AttemptResult::Ok);
  EXPECT_EQ(verdict(chunk("a")), AttemptResult::Truncated);
  EXPECT_EQ(verdict(kDone), AttemptResult::Truncated);
  EXPECT_EQ(verdict(""), AttemptResult::Truncated);
  EXPECT_EQ(verdict(": only comments\n\n"), AttemptResult::Truncated);
  EXPECT_EQ(verdict("<html>502 Bad Gateway</html>"), AttemptResult::Truncated);
  // Two choices, one of which ends twice.
  EXPECT_EQ(verdict(chunk("a") + kFinish + kFinish, 2), AttemptResult::Truncated);
  const std::string other = replaced(kFinish, "\"index\":0", "\"index\":1");
  EXPECT_EQ(verdict(chunk("a") + kFinish + other, 2), AttemptResult::Ok);
  // The connection broke: what counts is whether all choices had ended.
  EXPECT_EQ(verdict(chunk("a") + kFinish + kDone, 1, false), AttemptResult::Ok);
  EXPECT_EQ(verdict(chunk("a") + kFinish, 1, false), AttemptResult::Ok);
  EXPECT_EQ(verdict(chunk("a") + kFinish, 2, false), AttemptResult::Truncated);
  EXPECT_EQ(verdict(chunk("a"), 1, false), AttemptResult::Truncated);
}

TEST(AnswerRelayVerdict, an_engine_may_ignore_n_but_who_gives_one_a_reason_owes_it_to_all) {
  const auto verdict = [](const std::string& bytes, int choices, Api api = Api::ChatCompletions) {
    RelayPlan plan = streaming();
    plan.api = api;
    plan.choices = choices;
    return run_relay(plan, {bytes + kDone}).result;
  };
  const auto second = [](const std::string& bytes) {
    return replaced(bytes, "\"index\":0", "\"index\":1");
  };
  const std::string a = chunk("a"), b = second(chunk("b"));
  EXPECT_EQ(verdict(a, 2), AttemptResult::Ok);
  EXPECT_EQ(verdict(a + kFinish, 2), AttemptResult::Ok);
  EXPECT_EQ(verdict(a + b, 2), AttemptResult::Ok);  // an engine that gives no reasons
  EXPECT_EQ(verdict(a + b + kFinish, 2), AttemptResult::Truncated);
  EXPECT_EQ(verdict(a + b + kFinish + second(kFinish), 2), AttemptResult::Ok);
  const std::string text = R"(data: {"choices":[{"index":0,"text":"t"}]})" "\n\n";
  EXPECT_EQ(verdict(text, 4, Api::Completions), AttemptResult::Ok);
  EXPECT_EQ(verdict(text, 1, Api::Completions), AttemptResult::Ok);
}

// What a stream ends with when its engine could not say it.
std::string own_end(Api api) {
  const std::string stop = "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";
  return api == Api::Messages ? stop : kDone;
}

TEST(AnswerRelayVerdict, a_recorded_stream_that_is_cut_is_whole_once_all_choices_ended) {
  for (const Sample& sample : samples()) {
    const RelayPlan plan = plan_for(sample);
    Came broken;
    broken.whole = false;
    int wholes = 0;
    for (std::size_t size = 0; size < sample.bytes.size(); size += 3) {
      const std::string sent = sample.bytes.substr(0, read_events(sample.bytes, size));
      json::ChunkReader reader(sample.api);
      http::SseScanner scanner(sent.size());
      scanner.feed(sent);
      while (const auto event = scanner.next()) reader.read(event->data);
      const bool whole = reader.finished() >= sample.choices;
      wholes += whole;
      const RelayRun run = run_relay(plan, {sample.bytes.substr(0, size)}, broken);
      ASSERT_EQ(run.result, whole ? AttemptResult::Ok : AttemptResult::Truncated)
          << sample.name << " at " << size;
      const bool marked = sent.ends_with(own_end(sample.api)) || sample.api == Api::Responses;
      ASSERT_EQ(run.out, sent + (whole && !marked ? own_end(sample.api) : ""))
          << sample.name << size;
    }
    EXPECT_TRUE(wholes > 0 || sample.api == Api::Responses) << sample.name;
  }
}

TEST(AnswerRelayVerdict, a_cut_inside_an_event_that_the_client_has_in_part_is_truncated) {
  RelayPlan plan = streaming();
  plan.event_max = 1000;
  Came broken;
  broken.whole = false;
  const std::string part = "data: {\"pad\":\"" + std::string(3000, 'x');
  const RelayRun run = run_relay(plan, pieces(chunk("a") + part, {400}), broken);
  EXPECT_EQ(run.result, AttemptResult::Truncated);
  EXPECT_EQ(run.out, chunk("a") + part);
  // Behind the last choice's end it is none that anybody waits for.
  const std::string bytes = chunk("a") + kFinish;
  EXPECT_EQ(run_relay(plan, pieces(bytes + part, {400}), broken).out, bytes + kDone);
}

TEST(AnswerRelayVerdict, what_does_not_fit_into_any_memory_passes_unread) {
  RelayPlan plan = streaming();
  plan.event_max = 100;
  plan.assembled_max = 2000;
  const std::string huge = chunk(std::string(5000, 'x'));
  const RelayRun run = run_relay(plan, pieces(chunk("a") + huge + kFinish + kDone, {90}));
  EXPECT_EQ(run.out, chunk("a") + huge + kFinish + kDone);
  EXPECT_EQ(run.result, AttemptResult::Ok);
}

TEST(AnswerRelayVerdict, nothing_behind_the_end_is_shown_or_counted) {
  const std::string bytes = chunk("a") + kFinish + kDone;
  const std::string more = ": bye\n\n" + chunk("EVIL") + kError + kDone + "data: EVIL";
  for (const std::size_t size : {1ul, 30ul, 10000ul}) {
    const RelayRun run = run_relay(streaming(), pieces(bytes + more, {size}));
    EXPECT_EQ(run.out, bytes);
    EXPECT_EQ(run.result, AttemptResult::Ok);
    EXPECT_EQ(run.tokens, 1);
    EXPECT_EQ(run.signs, 3);
  }
  // Some servers add a [DONE] to the streams of every API.
  for (const Sample& sample : samples()) {
    if (sample.api != Api::Messages && sample.api != Api::Responses) continue;
    const RelayRun run = run_relay(plan_for(sample), {sample.bytes + kDone + more});
    EXPECT_EQ(run.out, sample.bytes + kDone) << sample.name;
    EXPECT_EQ(run_relay(plan_for(sample), {sample.bytes + more}).out, sample.bytes + kDone);
  }
}

TEST(AnswerRelayVerdict, an_end_that_proves_nothing_is_not_shown) {
  EXPECT_EQ(run_relay(streaming(), {kDone}).out, "");
  const std::string role = R"(data: {"choices":[{"index":0,"delta":{"role":"assistant"}}]})"
                           "\n\n";
  const RelayRun run = run_relay(streaming(), {role + kDone});
  EXPECT_EQ(run.out, role);
  EXPECT_EQ(run.result, AttemptResult::Truncated);
}

TEST(AnswerRelayVerdict, an_error_event_is_a_failure_and_its_done_is_not_shown) {
  const std::string begin = chunk("a");
  for (const std::size_t size : {1ul, 11ul, 10000ul}) {
    const RelayRun run = run_relay(streaming(), pieces(begin + kError + kDone, {size}));
    EXPECT_EQ(run.result, AttemptResult::StreamError);
    EXPECT_EQ(run.out, begin + kError);
    EXPECT_TRUE(run.failed);
    EXPECT_TRUE(run.begun);
  }
  // Even when a finish reason came before.
  EXPECT_EQ(run_relay(streaming(), {begin + kFinish + kError + kDone}).result,
            AttemptResult::StreamError);
}

TEST(AnswerRelayVerdict, an_error_as_the_first_event_is_held_and_nothing_is_shown) {
  for (const std::string& before : {std::string(), std::string(": wait\n\n")}) {
    const RelayRun run = run_relay(streaming(), pieces(before + kError + kDone, {9}));
    EXPECT_EQ(run.result, AttemptResult::ServerError);
    EXPECT_EQ(run.status, 500);
    EXPECT_EQ(run.out, "");
    EXPECT_FALSE(run.begun);
    EXPECT_EQ(run.held, R"({"error":{"message":"out of memory","code":500}})");
  }
}

TEST(AnswerRelayVerdict, nothing_is_shown_of_what_follows_an_error_that_came_first) {
  const std::string rest = chunk("a") + chunk("b") + ": slow\n\n" + chunk("c") + kFinish + kDone;
  for (const std::size_t size : {1ul, 50ul, 10000ul}) {
    const RelayRun run = run_relay(streaming(), pieces(kError + rest, {size}));
    EXPECT_EQ(run.result, AttemptResult::ServerError);
    EXPECT_EQ(run.out, "");
    EXPECT_FALSE(run.begun);
  }
}

TEST(AnswerRelayVerdict, an_error_in_a_field_of_its_own_is_one_that_clients_can_read) {
  const std::string error = R"({"code":500,"message":"slot \"1\" is gone","type":"server_error"})";
  const std::string line = "error: " + error + "\n\n";
  const std::string shown = "data: {\"error\":" + error + "}\n\n";
  for (const std::size_t size : {1ul, 10ul, 10000ul}) {
    RelayRun run = run_relay(streaming(), pieces(chunk("a") + line + kDone, {size}));
    EXPECT_EQ(run.result, AttemptResult::StreamError);
    EXPECT_EQ(run.out, chunk("a") + shown);
    run = run_relay(streaming(), pieces(line + kDone, {size}));
    EXPECT_EQ(run.result, AttemptResult::ServerError);
    EXPECT_EQ(run.status, 500);
    EXPECT_EQ(run.held, "{\"error\":" + error + "}");
  }
  const RelayRun run = run_relay(streaming(), {chunk("a") + "error: no \"JSON\"\n\n" + kDone});
  EXPECT_EQ(run.out, chunk("a") + "data: {\"error\":\"no \\\"JSON\\\"\"}\n\n");
  EXPECT_EQ(run.result, AttemptResult::StreamError);
}

TEST(AnswerRelayVerdict, knows_the_errors_of_every_api) {
  RelayPlan plan = streaming();
  plan.api = Api::Messages;
  const std::string start = kMessages.substr(0, kMessages.find("\n\n") + 2);
  const std::string overloaded =
      "event: error\n"
      R"(data: {"type":"error","error":{"type":"overloaded_error","message":"m"}})"
      "\n\n";
  const std::string stop = "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";
  RelayRun run = run_relay(plan, {start + overloaded + stop});
  EXPECT_EQ(run.result, AttemptResult::StreamError);
  EXPECT_EQ(run.out, start + overloaded);

  plan.api = Api::Responses;
  const std::string created = kResponses.substr(0, kResponses.find("\n\n") + 2);
  const std::string failed =
      "event: response.failed\n"
      R"(data: {"type":"response.failed","response":{"status":"failed","error":{"code":"x"}}})"
      "\n\n";
  run = run_relay(plan, {created + failed});
  EXPECT_EQ(run.result, AttemptResult::StreamError);
  EXPECT_EQ(run.out, created + failed);
}

}  // namespace
}  // namespace signalbox::gateway
