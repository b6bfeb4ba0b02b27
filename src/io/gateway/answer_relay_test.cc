// SPDX-License-Identifier: Apache-2.0
// Goal: the relay gives on what engines stream byte for byte (INV-5), edits what it may and nothing
// else, and judges every end. Method: recorded and hand-made streams, cut at every byte and at
// random; what comes out is compared with text made by plain string work.
#include "io/gateway/answer_relay.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "io/gateway/relay_run_for_test.inc"
#include "io/http/transcript.h"
#include "io/json/answer_keys.h"

namespace signalbox::gateway {
namespace {

using http::transcript::pieces;
using model::Api;
using model::AttemptResult;

// A Messages stream as llama.cpp and vLLM send it.
const std::string kMessages =
    "event: message_start\n"
    R"(data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant",)"
    R"("content":[],"model":"tiny","stop_reason":null,"usage":{"input_tokens":9,)"
    R"("cache_read_input_tokens":4,"output_tokens":0}}})"
    "\n\n"
    "event: content_block_start\n"
    R"(data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}})"
    "\n\n"
    "event: content_block_delta\n"
    R"(data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}})"
    "\n\n"
    "event: content_block_stop\n"
    R"(data: {"type":"content_block_stop","index":0})"
    "\n\n"
    "event: message_delta\n"
    R"(data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},)"
    R"("usage":{"output_tokens":2}})"
    "\n\n"
    "event: message_stop\n"
    R"(data: {"type":"message_stop"})"
    "\n\n";

const std::string kResponses =
    "event: response.created\n"
    R"(data: {"type":"response.created","response":{"id":"resp_1","object":"response",)"
    R"("status":"in_progress","model":"tiny"}})"
    "\n\n"
    "event: response.output_text.delta\n"
    R"(data: {"type":"response.output_text.delta","item_id":"m","delta":"Hello"})"
    "\n\n"
    "event: response.output_text.delta\n"
    R"(data: {"type":"response.output_text.delta","item_id":"m","delta":" there"})"
    "\n\n"
    "event: response.completed\n"
    R"(data: {"type":"response.completed","response":{"id":"resp_1","status":"completed",)"
    R"("model":"tiny","usage":{"input_tokens":11,"output_tokens":3,"total_tokens":14}}})"
    "\n\n";

struct Sample {
  std::string name;
  Api api;
  int choices;
  std::string bytes;
  std::int64_t tokens;
  model::Usage usage;
  std::string model;  // as the engine wrote it
};

std::vector<Sample> samples() {
  const auto chat = Api::ChatCompletions;
  const auto text = Api::Completions;
  return {
      {"llama chat", chat, 1, recorded_stream(kLlama, "chat stream + usage"), 5, {34, 33, 5},
       "smollm2-135m"},
      {"llama chat without usage", chat, 1,
       recorded_stream(kLlama, "chat stream w/o usage, keepalive"), 3, {34, 33, 3}, "smollm2-135m"},
      {"llama n 2", chat, 2, recorded_stream(kLlama, "n 2 stream"), 4, {34, 33, 2}, "smollm2-135m"},
      {"llama completions", text, 1, recorded_stream(kLlama, "v1/completions stream"), 3,
       {3, 2, 3}, "smollm2-135m"},
      {"llama timings", chat, 1, recorded_stream(kLlama, "timings_per_token stream"), 0, {},
       "smollm2-135m"},
      {"vllm chat", chat, 1, recorded_stream(kVllm, "chat stream include_usage"), 3, {14, -1, 3},
       "tiny"},
      {"vllm running usage", chat, 1, recorded_stream(kVllm, "chat stream continuous_usage_stats"),
       0, {}, "tiny"},
      {"vllm completions", text, 1,
       recorded_stream(kVllm, "completions stream token ids return_token_ids"), 3, {}, "tiny"},
      {"messages", Api::Messages, 1, kMessages, 1, {13, 4, 2}, "tiny"},
      {"responses", Api::Responses, 1, kResponses, 2, {11, -1, 3}, "tiny"},
  };
}

RelayPlan plan_for(const Sample& sample) {
  RelayPlan plan;
  plan.api = sample.api;
  plan.choices = sample.choices;
  plan.client_streams = true;
  return plan;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

// What of the first `size` bytes of a stream with LF lines are whole events.
std::size_t whole_events(const std::string& stream, std::size_t size) {
  const auto at = stream.substr(0, size).rfind("\n\n");
  return at == std::string::npos ? 0 : at + 2;
}
// And of those whole but for their blank line.
std::size_t read_events(const std::string& stream, std::size_t size) {
  for (const std::size_t end : {size + 1, size + 2}) {
    if (end <= stream.size() && whole_events(stream, end) == end) return end;
  }
  return whole_events(stream, size);
}

// A chat chunk with one delta.
std::string chunk(const std::string& text, const std::string& more = "") {
  return R"(data: {"model":"m","choices":[{"index":0,"delta":{"content":")" + text + "\"}" + more +
         "}]}\n\n";
}
const std::string kFinish =
    R"(data: {"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]})"
    "\n\n";
const std::string kDone = "data: [DONE]\n\n";
const std::string kError = R"(data: {"error":{"message":"out of memory","code":500}})"
                           "\n\n";

RelayPlan streaming() {
  RelayPlan plan;
  plan.client_streams = true;
  return plan;
}

TEST(AnswerRelay, passes_every_recorded_stream_on_byte_for_byte) {
  for (const Sample& sample : samples()) {
    ASSERT_FALSE(sample.bytes.empty()) << sample.name;
    const RelayRun run = run_relay(plan_for(sample), {sample.bytes});
    EXPECT_EQ(run.out, sample.bytes) << sample.name;
    EXPECT_EQ(run.result, AttemptResult::Ok) << sample.name;
    EXPECT_EQ(run.mode, AnswerRelay::Mode::Stream) << sample.name;
    EXPECT_GT(run.tokens, 0) << sample.name;
    if (sample.tokens > 0) {
      EXPECT_EQ(run.tokens, sample.tokens) << sample.name;
    }
    if (sample.usage.prompt_tokens >= 0) {
      EXPECT_EQ(run.usage.prompt_tokens, sample.usage.prompt_tokens) << sample.name;
      EXPECT_EQ(run.usage.cached_tokens, sample.usage.cached_tokens) << sample.name;
      EXPECT_EQ(run.usage.completion_tokens, sample.usage.completion_tokens) << sample.name;
    }
  }
}

TEST(AnswerRelay, sends_at_once_what_is_whole_and_never_a_part_of_an_event) {
  for (const Sample& sample : samples()) {
    const RelayRun run = run_relay(plan_for(sample), pieces(sample.bytes, {1}));
    EXPECT_EQ(run.out, sample.bytes) << sample.name;
    for (std::size_t i = 0; i < run.sizes.size(); ++i) {
      ASSERT_EQ(run.sizes[i], whole_events(sample.bytes, i + 1)) << sample.name << " byte " << i;
    }
  }
}

// What the client got, and what was told of it.
void assert_same(const RelayRun& a, const RelayRun& b) {
  RC_ASSERT(a.out == b.out);
  RC_ASSERT(a.result == b.result);
  RC_ASSERT(a.failed == b.failed);
  RC_ASSERT(a.tokens == b.tokens);
  RC_ASSERT(a.usage.prompt_tokens == b.usage.prompt_tokens);
  RC_ASSERT(a.usage.cached_tokens == b.usage.cached_tokens);
  RC_ASSERT(a.usage.completion_tokens == b.usage.completion_tokens);
  RC_ASSERT(a.timings.prefill == b.timings.prefill);
  RC_ASSERT(a.timings.decode == b.timings.decode);
}

RC_GTEST_PROP(AnswerRelayLaw, however_a_stream_is_split_the_same_comes_of_it, ()) {
  static const std::vector<Sample> all = samples();
  const Sample& sample = all[*rc::gen::inRange<std::size_t>(0, all.size())];
  RelayPlan plan = plan_for(sample);
  plan.drop_usage = *rc::gen::arbitrary<bool>();
  if (*rc::gen::arbitrary<bool>()) plan.model = *rc::gen::element<std::string>("p", "a \"b\" \\c");
  // Some streams break off, some end in CRLF.
  std::string bytes = sample.bytes;
  if (*rc::gen::arbitrary<bool>()) bytes = replaced(bytes, "\n", "\r\n");
  if (*rc::gen::arbitrary<bool>()) bytes.resize(*rc::gen::inRange<std::size_t>(0, bytes.size()));
  const auto sizes =
      *rc::gen::container<std::vector<std::size_t>>(rc::gen::inRange<std::size_t>(1, 900));
  Came came;
  came.whole = *rc::gen::arbitrary<bool>();

  const RelayRun one = run_relay(plan, {bytes}, came);
  const RelayRun many = run_relay(plan, pieces(bytes, sizes), came);
  assert_same(many, one);
  RC_ASSERT(many.held == one.held);
  RC_ASSERT(many.begun == one.begun);
}

RC_GTEST_PROP(AnswerRelayLaw, events_of_any_kind_pass_unchanged_in_order, ()) {
  // After the first event nothing is dropped: comments, ids, retries, empty and unknown fields.
  const auto events = *rc::gen::container<std::vector<std::string>>(rc::gen::element<std::string>(
      ": comment\n\n", ":\n\n", "\n", "id: 7\n\n", "retry: 10\n\n", "data\n\n", "data:x\n\n",
      "event: ping\ndata: {}\n\n", "data: one\ndata: two\n\n", "unknown\r\n\r\n", "data: r\r\r",
      "data: {\"choices\":[]}\n\n", "data: \xc3\xa9\xff\n\n"));
  std::string bytes = chunk("a");
  for (const std::string& event : events) bytes += event;
  bytes += kFinish + kDone;
  const auto sizes =
      *rc::gen::container<std::vector<std::size_t>>(rc::gen::inRange<std::size_t>(1, 40));
  const RelayRun run = run_relay(streaming(), pieces(bytes, sizes));
  RC_ASSERT(run.out == bytes);
  RC_ASSERT(run.result == AttemptResult::Ok);
}

TEST(AnswerRelay, puts_the_public_name_in_place_of_the_engines_and_touches_nothing_else) {
  for (const Sample& sample : samples()) {
    RelayPlan plan = plan_for(sample);
    plan.model = "public \"name\"";
    const std::string expected = replaced(sample.bytes, "\"model\":\"" + sample.model + "\"",
                                          R"("model":"public \"name\"")");
    ASSERT_NE(expected, sample.bytes) << sample.name;
    EXPECT_EQ(run_relay(plan, {sample.bytes}).out, expected) << sample.name;
    EXPECT_EQ(run_relay(plan, pieces(sample.bytes, {7})).out, expected) << sample.name;
  }
}

TEST(AnswerRelay, a_name_inside_the_answers_text_is_not_renamed) {
  RelayPlan plan = streaming();
  plan.model = "public";
  const std::string bytes = R"(data: {"choices":[{"index":0,"delta":{"content":"\"model\":\"m\""},)"
                            R"("model":"m"}],"x":{"model":"m"}})"
                            "\n\n";
  EXPECT_EQ(run_relay(plan, {bytes}).out, bytes);
}

TEST(AnswerRelay, drops_the_usage_event_only_where_we_asked_for_it) {
  for (const auto& [file, title] :
       {std::pair(kLlama, "chat stream + usage"), std::pair(kVllm, "chat stream include_usage")}) {
    const std::string bytes = recorded_stream(file, title);
    RelayPlan plan = streaming();
    EXPECT_EQ(run_relay(plan, {bytes}).out, bytes);
    plan.drop_usage = true;
    const auto begin = bytes.rfind("data: {");
    ASSERT_NE(bytes.find("\"choices\":[]", begin), std::string::npos);
    const std::string expected = bytes.substr(0, begin) + kDone;
    const RelayRun run = run_relay(plan, {bytes});
    EXPECT_EQ(run.out, expected);
    EXPECT_EQ(run.result, AttemptResult::Ok);
    EXPECT_GT(run.usage.completion_tokens, 0);  // dropped, but read
  }
}

TEST(AnswerRelay, cuts_the_null_usage_that_came_of_our_asking) {
  RelayPlan plan = streaming();
  const std::string rest = R"("choices":[{"index":0,"delta":{"content":"a"}}])";
  const std::string last = "data: {" + rest + ",\"usage\":null}\n\n";
  const std::string first = "data: {\"usage\":null," + rest + "}\n\n";
  const std::string inside = "data: {\"id\":1, \"usage\" : null," + rest + "}\n\n";
  EXPECT_EQ(run_relay(plan, {last + first + inside}).out, last + first + inside);
  plan.drop_usage = true;
  const std::string clean = "data: {" + rest + "}\n\n";
  EXPECT_EQ(run_relay(plan, {last}).out, clean);
  EXPECT_EQ(run_relay(plan, {first}).out, clean);
  EXPECT_EQ(run_relay(plan, {inside}).out, "data: {\"id\":1," + rest + "}\n\n");
}

TEST(AnswerRelay, usage_beside_choices_is_never_dropped) {
  RelayPlan plan = streaming();
  plan.drop_usage = true;
  const std::string bytes = recorded_stream(kVllm, "chat stream continuous_usage_stats");
  const std::string out = run_relay(plan, {bytes}).out;
  EXPECT_EQ(out.find("\"choices\":[]"), std::string::npos);
  EXPECT_NE(out.find("\"usage\":{"), std::string::npos);
}

TEST(AnswerRelay, keeps_comments_before_the_first_event_to_itself) {
  const std::string comments = ": waiting\n\n:\n\nretry: 5\n\n";
  const std::string events = chunk("a") + ": slow\n\n" + chunk("b") + kFinish + kDone;
  for (const std::size_t size : {1ul, 5ul, 10000ul}) {
    const RelayRun run = run_relay(streaming(), pieces(comments + events, {size}));
    EXPECT_EQ(run.out, events);
    EXPECT_EQ(run.tokens, 2);
  }
  AnswerRelay relay;
  relay.begin(streaming(), 200, true);
  relay.feed(comments);
  EXPECT_TRUE(relay.pieces().empty());
  EXPECT_FALSE(relay.stream_begun());
}

TEST(AnswerRelay, an_unfinished_event_waits_and_an_endless_one_passes) {
  AnswerRelay relay;
  RelayPlan plan = streaming();
  plan.event_max = 1000;
  relay.begin(plan, 200, true);
  const std::string first = chunk("a");
  relay.feed(first);
  EXPECT_TRUE(relay.between_events());
  relay.clear_pieces();
  std::string out;
  const std::string open = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"";
  relay.feed(open);
  EXPECT_TRUE(relay.pieces().empty());
  EXPECT_TRUE(relay.between_events());  // for the client
  const std::string some(900, 'x');
  relay.feed(some);
  EXPECT_TRUE(relay.pieces().empty());
  relay.feed(some);  // beyond the limit: what was held goes with it
  collect(relay, out);
  EXPECT_EQ(out, open + some + some);
  EXPECT_FALSE(relay.between_events());
  const std::string close = "\"}}]}\n\n" + kFinish + kDone;
  relay.feed(close);
  collect(relay, out);
  EXPECT_EQ(out, open + some + some + close);
  EXPECT_TRUE(relay.between_events());
  EXPECT_EQ(relay.end(true), AttemptResult::Ok);
}

TEST(AnswerRelay, an_event_of_a_quarter_mebibyte_is_held_whole) {
  const std::string big = chunk(std::string((256 << 10) - 100, 'x'));
  const std::string bytes = big + kFinish + kDone;
  const RelayRun run = run_relay(streaming(), pieces(bytes, {4096}));
  EXPECT_EQ(run.out, bytes);
  EXPECT_EQ(run.result, AttemptResult::Ok);
  EXPECT_EQ(run.tokens, 1);
  for (const std::size_t size : run.sizes) {
    EXPECT_TRUE(size == 0 || size >= big.size()) << size;
  }
}

TEST(AnswerRelay, no_end_hides_behind_padding) {
  const std::string comment = ": " + std::string(300 << 10, 'p') + "\n";
  const std::string error = "data: {\"error\":{\"message\":\"e\",\"code\":500}}\n\n";
  for (const std::string& end : {comment + "data: [DONE]\n\n", "id: 1\r\n" + comment + kDone,
                                 "data:[DONE]\n" + comment + "\n"}) {
    for (const std::size_t size : {std::size_t{4096}, end.size()}) {
      const RelayRun failed = run_relay(streaming(), pieces(chunk("a") + error + end, {size}));
      EXPECT_EQ(failed.result, AttemptResult::StreamError);
      EXPECT_EQ(failed.out, chunk("a") + error);
      RelayPlan two = streaming();
      two.choices = 2;
      const RelayRun half = run_relay(two, pieces(chunk("a") + chunk("b") + end, {size}));
      EXPECT_EQ(half.out.find("[DONE]") != half.out.npos, half.result == AttemptResult::Ok);
      const RelayRun good = run_relay(streaming(), pieces(chunk("a") + kFinish + end, {size}));
      EXPECT_EQ(good.result, AttemptResult::Ok);
      EXPECT_EQ(good.out, chunk("a") + kFinish + end);
    }
  }
}

TEST(AnswerRelayVerdict, a_choice_that_nobody_asked_for_must_end_too) {
  const std::string second = replaced(chunk("b"), "\"index\":0", "\"index\":1");
  const RelayRun run = run_relay(streaming(), {chunk("a") + second + kFinish});
  EXPECT_EQ(run.result, AttemptResult::Truncated);
  EXPECT_EQ(run.out.find("[DONE]"), run.out.npos);
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

TEST(AnswerRelay, what_is_withheld_and_too_long_to_keep_is_no_success) {
  RelayPlan plan = streaming();
  plan.assembled_max = 400 << 10;
  const std::string lost = ": " + std::string(500 << 10, 'p') + "\n" + chunk("b");
  const RelayRun run = run_relay(plan, pieces(chunk("a") + lost + kFinish + kDone, {4096}));
  EXPECT_EQ(run.result, AttemptResult::Overrun);
  EXPECT_EQ(run.out, chunk("a"));
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

// Long events pass as they come; what they say counts as if they had been held.
RC_GTEST_PROP(AnswerRelayLaw, however_long_its_events_may_be_the_same_comes_of_a_stream, ()) {
  static const std::vector<Sample> all = samples();
  const std::string said_long =
      R"(data: {"choices":[{"index":0,"delta":{"content":"x"}}],"pad":")" +
      std::string(700, 'p') + R"(","error":{"message":"late"}})" + "\n\n";
  const std::string old_error = R"(data: {"object":"error","message":"out of memory","code":500})"
                                "\n\n";
  const std::string typed = "event: error\ndata: {\"message\":\"boom\"}\n\n";
  const Sample& sample = all[*rc::gen::inRange<std::size_t>(0, all.size())];
  RelayPlan plan = plan_for(sample);
  std::string bytes = sample.bytes;
  if (json::has_choices(sample.api)) {
    const std::string more =
        *rc::gen::element<std::string>("", "", said_long, old_error, typed);
    const auto at = whole_events(
        bytes, *rc::gen::resize(100, rc::gen::inRange<std::size_t>(0, bytes.size())));
    bytes.insert(std::max(at, bytes.find("\n\n") + 2), more);
  }
  const auto sizes =
      *rc::gen::container<std::vector<std::size_t>>(rc::gen::inRange<std::size_t>(1, 300));
  Came came;
  came.whole = *rc::gen::arbitrary<bool>();
  // Ends between events, within the blank line, or whole.
  const auto any = *rc::gen::resize(100, rc::gen::inRange<std::size_t>(0, 2 * bytes.size()));
  const auto end = read_events(bytes, std::min(any, bytes.size()));
  bytes.resize(end - std::min(end, *rc::gen::inRange<std::size_t>(0, 3)));
  const RelayRun held = run_relay(plan, {bytes}, came);
  plan.event_max = *rc::gen::inRange<std::size_t>(1, 400);
  const RelayRun passed = run_relay(plan, pieces(bytes, sizes), came);
  if (!held.begun) return;
  assert_same(passed, held);
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

TEST(AnswerRelay, comments_are_no_sign_of_an_engine_at_work) {
  const std::string comments = ": ping\n\n:\n\nretry: 5\n\n\n";
  EXPECT_EQ(run_relay(streaming(), pieces(comments, {5})).signs, 0);
  EXPECT_EQ(run_relay(streaming(), pieces(chunk("a") + comments + chunk("b"), {5})).signs, 2);
  const std::string pings = "event: ping\ndata: {\"type\": \"ping\"}\n\ndata:\n\n";
  EXPECT_EQ(run_relay(streaming(), pieces(chunk("a") + pings + pings, {5})).signs, 1);
  EXPECT_EQ(run_relay(streaming(), pieces("data: half an event", {5})).signs, 0);
  RelayPlan plan = streaming();
  plan.event_max = 10;
  EXPECT_GT(run_relay(plan, pieces("data: " + std::string(50, 'x'), {10})).signs, 3);
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

TEST(AnswerRelay, chunks_that_differ_in_their_text_alone_are_all_counted_and_judged) {
  const std::string stream = chunk("one") + chunk("two") + chunk("") + chunk("\\\"") +
                             chunk("\xc3\xa9") + chunk("x", R"(,"finish_reason":"stop")") + kDone;
  const RelayRun run = run_relay(streaming(), {stream});
  EXPECT_EQ(run.out, stream);
  EXPECT_EQ(run.tokens, 5);
  EXPECT_EQ(run.result, AttemptResult::Ok);
  // The text itself may look like the rest of a chunk.
  const std::string sly = chunk("a") + chunk(R"(b\"}}],\"error\":{\"message\":\"m\"}")") + kDone;
  EXPECT_EQ(run_relay(streaming(), {sly}).result, AttemptResult::Ok);
  const std::string real = R"(data: {"model":"m","choices":[{"index":0,"delta":{"content":"a"}}],)"
                           R"("error":{"message":"","delta":{"content":"b"}}})"
                           "\n\n";
  EXPECT_EQ(run_relay(streaming(), {chunk("a") + real + kDone}).result, AttemptResult::StreamError);
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

TEST(AnswerRelay, a_last_event_without_its_blank_line_is_given_one) {
  const std::string begin = chunk("a") + kFinish;
  const std::string usage = R"(data: {"choices":[],"usage":{"prompt_tokens":3,"total_tokens":4}})";
  for (const std::string line_end : {"", "\n", "\r", "\r\n"}) {
    const std::string missing = line_end.ends_with('\n') ? "\n" : "\n\n";
    for (const std::size_t size : {1ul, 7ul, 10000ul}) {
      const RelayRun done =
          run_relay(streaming(), pieces(begin + "data: [DONE]" + line_end, {size}));
      EXPECT_EQ(done.out, begin + "data: [DONE]" + line_end + missing);
      EXPECT_EQ(done.result, AttemptResult::Ok);
      const RelayRun told = run_relay(streaming(), pieces(begin + usage + line_end, {size}));
      EXPECT_EQ(told.out, begin + usage + line_end + missing + kDone);
    }
  }
  RelayPlan plan = streaming();
  plan.model = "public";
  plan.drop_usage = true;
  const RelayRun run = run_relay(plan, {begin + usage + "\n"});
  EXPECT_EQ(run.out, replaced(begin, "\"m\"", "\"public\"") + kDone);
  EXPECT_EQ(run.usage.prompt_tokens, 3);
  EXPECT_EQ(run_relay(plan, {begin + R"(data: {"model":"m","choices":[]})"}).out,
            replaced(begin, "\"m\"", "\"public\"") +
                "data: {\"model\":\"public\",\"choices\":[]}\n\n" + kDone);
}

// Behind a whole answer, and however the body ends; behind half an answer no mark is made up.
TEST(AnswerRelay, of_half_an_event_nothing_goes_on) {
  const std::string begin = chunk("a") + kFinish;
  for (const bool whole : {true, false}) {
    Came came;
    came.whole = whole;
    for (const std::string half : {"data: [DO", "data: {\"choices\":[", "data: {", ": bye",
                                   "id: 7\n", "dat", ""}) {
      const RelayRun run = run_relay(streaming(), {begin + half}, came);
      EXPECT_EQ(run.out, begin + kDone) << half;
      EXPECT_EQ(run.result, AttemptResult::Ok) << half;
    }
    EXPECT_EQ(run_relay(streaming(), {begin + kDone}, came).out, begin + kDone);
    EXPECT_EQ(run_relay(streaming(), {chunk("a") + "data: [DO"}, came).out, chunk("a"));
    EXPECT_EQ(run_relay(streaming(), {chunk("a") + "data: [DO"}, came).result,
              AttemptResult::Truncated);
    // What lacks its blank line alone is no half event, even when it ends the answer.
    const std::string last = kFinish.substr(0, kFinish.size() - 2);
    EXPECT_EQ(run_relay(streaming(), {chunk("a") + last}, came).out, begin + kDone);
    EXPECT_EQ(run_relay(streaming(), {chunk("a") + "data: [DONE]\n"}, came).out,
              chunk("a") + kDone);
  }
}

TEST(AnswerRelay, an_error_in_the_usage_that_nobody_asked_for_is_shown) {
  RelayPlan plan = streaming();
  plan.drop_usage = true;
  const std::string bytes =
      chunk("a") + kFinish +
      "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3},\"error\":{\"message\":\"x\"}}\n\n";
  for (const std::string& end : {std::string(), std::string(kDone)}) {
    const RelayRun run = run_relay(plan, {bytes + end});
    EXPECT_EQ(run.out, bytes);
    EXPECT_EQ(run.result, AttemptResult::StreamError);
  }
}

TEST(AnswerRelay, begins_anew_with_each_attempt) {
  AnswerRelay relay;
  relay.begin(streaming(), 200, true);
  relay.feed("data: {\"error\":{\"message\":\"m\"}}\n\ndata: half");
  EXPECT_EQ(relay.end(false), AttemptResult::ServerError);
  EXPECT_EQ(relay.status(), 502);
  relay.begin(streaming(), 200, true);
  EXPECT_FALSE(relay.stream_failed());
  EXPECT_EQ(relay.held(), "");
  EXPECT_EQ(relay.status(), 200);
  EXPECT_EQ(relay.signs(), 0);
  const std::string bytes = chunk("a") + kFinish + kDone;
  relay.feed(bytes);
  std::string out;
  collect(relay, out);
  EXPECT_EQ(out, bytes);
  EXPECT_EQ(relay.tokens(), 1);
  EXPECT_EQ(relay.end(true), AttemptResult::Ok);
}

}  // namespace
}  // namespace signalbox::gateway
