// SPDX-License-Identifier: Apache-2.0
// Goal: what is done to a trace does that and nothing else. Method: a trace of ten calls a second
// apart, and sessions, small enough to count.
#include "sim/trace/operations.h"

#include <gtest/gtest.h>

namespace signalbox::trace {
namespace {

using namespace std::chrono_literals;

// Ten calls a second apart, of one common piece and one of their own.
Trace ten() {
  Trace trace;
  trace.pieces.push_back({-1, 100, 50, true});
  for (int i = 0; i < 10; ++i) {
    Call call;
    call.at = i * 1s;
    call.last = i + 1;
    call.prompt_tokens = 60 + i;
    call.output_tokens = 5;
    call.answer = static_cast<std::uint64_t>(200 + i);
    trace.pieces.push_back({0, static_cast<std::uint64_t>(i), 10 + i, false});
    trace.calls.push_back(call);
  }
  trace.lasts = 9s;
  return trace;
}

// The same calls as sessions of five; the second waits within itself. Starts 4 s apart, or unknown.
Trace sessions(bool known) {
  Trace trace = ten();
  for (int s = 0; s < 2; ++s) {
    trace.sessions.push_back({5 * s, 5, known ? Duration(4s * s) : Duration(-1)});
    for (int i = 1; i < 5; ++i) {
      Call& call = trace.calls[static_cast<std::size_t>(5 * s + i)];
      call.after = 5 * s + i - 1;
      call.think = 2s;
    }
  }
  return trace;
}

void expect_sound(const Trace& trace) { EXPECT_EQ(fault_of(trace), std::nullopt); }

TEST(Operations, ASliceBeginsAtZeroAndEndsBeforeItsEnd) {
  const Trace part = slice(ten(), 2s, 3s);
  expect_sound(part);
  ASSERT_EQ(part.calls.size(), 3u);
  EXPECT_EQ(part.calls[0].at, 0s);
  EXPECT_EQ(part.calls[0].prompt_tokens, 62);
  EXPECT_EQ(part.lasts, 3s);
  EXPECT_TRUE(slice(ten(), 20s, 3s).calls.empty());
}

TEST(Operations, ASliceOfSessionsTakesThemWhole) {
  const Trace part = slice(sessions(true), 4s, 1s);
  expect_sound(part);
  ASSERT_EQ(part.sessions.size(), 1u);
  EXPECT_EQ(part.sessions[0].start, 0s);
  EXPECT_EQ(part.calls[1].after, 0);
  EXPECT_EQ(slice(sessions(false), 4s, 1s).sessions.size(), 2u);
  const Trace second = take_sessions(sessions(false), 1, 7);
  expect_sound(second);
  EXPECT_EQ(second.calls.size(), 5u);
  EXPECT_EQ(second.calls[4].after, 3);
}

TEST(Operations, ScalingTheRateMovesArrivalsOnly) {
  const Trace twice = scale_rate(ten(), 2);
  expect_sound(twice);
  EXPECT_EQ(twice.calls[4].at, 2s);
  EXPECT_EQ(twice.lasts, 4500ms);
  const Trace starts = scale_rate(sessions(true), 2);
  EXPECT_EQ(starts.sessions[1].start, 2s);
  EXPECT_EQ(starts.calls[1].think, 2s);
}

TEST(Operations, ASplicedTraceFillsItsTimeWithNewContent) {
  const Trace day = splice(ten(), 25s);
  expect_sound(day);
  ASSERT_GT(day.calls.size(), 20u);
  EXPECT_LT(day.calls.back().at, 25s);
  EXPECT_GE(day.calls.back().at, 23s);
  const auto first = prompt_of(day, day.calls[0]);
  const auto again = prompt_of(day, day.calls[10]);
  EXPECT_EQ(first[0], again[0]);
  EXPECT_NE(first[1].content, again[1].content);
  EXPECT_EQ(first[1].tokens, again[1].tokens);
  EXPECT_NE(answer_of(day.calls[0]), answer_of(day.calls[10]));
  EXPECT_EQ(splice(ten(), 5s).calls.size(), 5u);
}

TEST(Operations, SplicedSessionsWaitWithinTheirOwnCopy) {
  const Trace day = splice(sessions(true), 30s);
  expect_sound(day);
  EXPECT_GT(day.sessions.size(), 4u);
  EXPECT_EQ(splice(sessions(false), 30s).sessions.size(), 2u);
}

TEST(Operations, SpreadUndoesCoarseSteps) {
  Trace coarse = ten();
  for (Call& call : coarse.calls) call.at = call.at / 3s * 3s;
  Rng rng(1, "spread");
  const Trace fine = spread(coarse, 3s, rng);
  expect_sound(fine);
  int steps = 0;
  for (const Call& call : fine.calls) steps += call.at % 3s == 0s;
  EXPECT_LT(steps, 2);
}

TEST(Operations, StatisticsCountAndScalingReachesTheWantedRate) {
  const Statistics s = statistics(ten());
  EXPECT_EQ(s.calls, 10);
  EXPECT_DOUBLE_EQ(s.prompt_mean, 64.5);
  EXPECT_EQ(s.output_p99, 5);
  const auto requests = scale_to_requests(ten(), 4);
  ASSERT_TRUE(requests);
  EXPECT_NEAR(statistics(*requests).requests_per_second, 4, 1e-6);
  const auto tokens = scale_to_tokens(ten(), 1000);
  ASSERT_TRUE(tokens);
  EXPECT_NEAR(statistics(*tokens).tokens_per_second, 1000, 1e-3);
  EXPECT_FALSE(scale_to_requests(sessions(false), 4));
  EXPECT_FALSE(scale_to_requests(slice(ten(), 0s, 0s), 4));
}

TEST(Trace, FaultsAreFound) {
  Trace trace = ten();
  trace.calls[3].at = 20s;
  EXPECT_TRUE(fault_of(trace));
  trace = ten();
  trace.calls[3].prompt_tokens = 1;
  EXPECT_TRUE(fault_of(trace));
  trace = sessions(true);
  trace.calls[7].after = 2;
  EXPECT_TRUE(fault_of(trace));
  trace = sessions(true);
  trace.sessions.pop_back();
  EXPECT_TRUE(fault_of(trace));
  trace = ten();
  trace.pieces[1].before = 5;
  EXPECT_TRUE(fault_of(trace));
}

}  // namespace
}  // namespace signalbox::trace
