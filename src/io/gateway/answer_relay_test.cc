// SPDX-License-Identifier: Apache-2.0
// Goal: the relay gives on what engines stream byte for byte (INV-5), and edits what it may and
// nothing else. Method: recorded and hand-made streams, cut at every byte and at random; what comes
// out is compared with text made by plain string work.
#include "io/gateway/answer_relay.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "io/gateway/relay_samples_for_test.inc"
#include "io/json/answer_keys.h"

namespace signalbox::gateway {
namespace {

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

TEST(AnswerRelay, what_is_withheld_and_too_long_to_keep_is_no_success) {
  RelayPlan plan = streaming();
  plan.assembled_max = 400 << 10;
  const std::string lost = ": " + std::string(500 << 10, 'p') + "\n" + chunk("b");
  const RelayRun run = run_relay(plan, pieces(chunk("a") + lost + kFinish + kDone, {4096}));
  EXPECT_EQ(run.result, AttemptResult::Overrun);
  EXPECT_EQ(run.out, chunk("a"));
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
