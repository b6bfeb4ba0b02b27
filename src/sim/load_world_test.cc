// SPDX-License-Identifier: Apache-2.0
// Goal: every kind of load and of client runs through the world with every checker on, and behaves
// as it is described. Method: one calm fleet, one load a test, small.
#include <gtest/gtest.h>

#include "sim/random_load.h"
#include "sim/run.h"
#include "sim/trace/agentic.h"
#include "sim/trace/azure.h"
#include "sim/trace/mooncake.h"
#include "sim/trace/operations.h"
#include "sim/trace/servegen.h"
#include "sim/trace/tidal.h"

namespace signalbox::sim {
namespace {

using namespace std::chrono_literals;
using model::Outcome;

// Four engines well below their capacity; nothing fails.
Scenario calm() {
  Scenario s;
  s.seed = 21;
  s.groups[0].count = 4;
  s.groups[0].spec.kv_tokens = 200'000;
  s.load.requests = 400;
  s.load.sessions_per_second = 8;
  s.load.leavers = 0;
  s.load.answer = {60, 0.6, 1, 400};
  s.load.system = {1500, 0.3, 100, 3000};
  s.config.decisions_kept = 100;
  return s;
}

Report run_clean(const Scenario& s) {
  Report report = run(s);
  EXPECT_TRUE(report.violations.empty()) << text(report);
  return report;
}

void expect_all_done(const Report& report) {
  EXPECT_EQ(report.tasks_done, report.tasks) << text(report);
  EXPECT_EQ(report.arrived, report.tasks) << text(report);
  EXPECT_EQ(report.count(Outcome::Completed), report.tasks) << text(report);
}

void share(Scenario& s, trace::Trace trace) {
  ASSERT_EQ(trace::fault_of(trace), std::nullopt);
  s.load.trace = std::make_shared<trace::Trace>(std::move(trace));
}

TEST(LoadWorld, EveryArrivalProcessRuns) {
  for (const double cv : {0.0, 1.0, 4.0}) {
    for (const bool bursts : {false, true}) {
      Scenario s = calm();
      s.load.arrivals.cv = cv;
      if (bursts) s.load.arrivals.bursts = {2s, 6s, 0.1};
      s.load.arrivals.curve.points = {{0s, 0.5}, {20s, 1.5}, {40s, 0.5}};
      s.load.arrivals.curve.period = 40s;
      expect_all_done(run_clean(s));
    }
  }
}

TEST(LoadWorld, NobodyComesAfterTheLoadsEnd) {
  Scenario s = calm();
  s.load.requests = 1'000'000;
  s.load.follow_up = 0;
  s.load.lasts = 20s;
  const Report report = run_clean(s);
  expect_all_done(report);
  EXPECT_NEAR(static_cast<double>(report.tasks), 160, 50);
  EXPECT_LT(report.elapsed, 40s);
}

TEST(LoadWorld, TheWarmUpIsServedAndNotCounted) {
  Scenario s = calm();
  s.load.pressers = 0.5;
  s.load.impatience = 20ms;
  const Report whole = run_clean(s);
  s.load.warm_up = whole.elapsed / 2;
  const Report half = run_clean(s);
  EXPECT_EQ(half.digest, whole.digest);
  EXPECT_EQ(half.arrived, whole.arrived);
  EXPECT_NEAR(static_cast<double>(half.tasks), static_cast<double>(whole.tasks) / 2, 60);
  EXPECT_EQ(half.tasks_done, half.tasks);
  EXPECT_EQ(half.task_e2e.count(), half.tasks);
  EXPECT_EQ(half.e2e.count(), half.tasks + half.pressed);
  EXPECT_LT(half.pressed, whole.pressed);
  EXPECT_NEAR(half.goodput(), whole.goodput(), 0.2 * whole.goodput());
}

TEST(LoadWorld, AnOpenLoopComesWholeAndSharesWhatItSaid) {
  Scenario s = calm();
  Rng rng(1, "trace");
  share(s, random_open_loop(s.load, 8, rng));
  s.load.requests = 1'000'000;
  const Report report = run_clean(s);
  expect_all_done(report);
  EXPECT_EQ(report.tasks, s.load.trace->calls.size());
  EXPECT_GT(report.cache_hit(), 0.2) << text(report);
}

// Plays what was read until its end.
Report play(Result<trace::Trace> read) {
  Scenario s = calm();
  s.load.requests = 1'000'000;
  EXPECT_TRUE(read) << read.error().message;
  if (read) share(s, std::move(*read));
  const Report report = run_clean(s);
  expect_all_done(report);
  return report;
}

TEST(LoadWorld, EveryFormatPlays) {
  const auto mooncake = trace::read_mooncake(
      R"({"timestamp": 0, "input_length": 1100, "output_length": 5, "hash_ids": [0, 1, 2]})"
      "\n"
      R"({"timestamp": 9000, "input_length": 1536, "output_length": 9, "hash_ids": [0, 1, 3]})");
  ASSERT_TRUE(mooncake);
  const Report chat = play(trace::splice(*mooncake, 100s));
  EXPECT_GT(chat.tasks, 6u);
  EXPECT_GT(chat.cache_hit(), 0.5) << text(chat);  // what both begin with is common to all copies

  const auto azure = trace::read_azure("t_ms,input_tokens,output_tokens\n0,480,10\n98.2,110,9\n");
  EXPECT_EQ(play(azure).tasks, 2u);

  const auto servegen = trace::read_servegen(
      "m", "model,client,t_s,rate_rps,pattern,shape\nm,0,0,2,G,0.5\n",
      "model,client,t_s,field,mean,p01,p05,p10,p25,p50,p75,p90,p95,p99,p999,max\n"
      "m,0,0,input_tokens,100,1,1,50,80,100,100,120,150,200,300,400\n"
      "m,0,0,output_tokens,9,7,7,7,7,7,7,7,9,9,9,9\n");
  ASSERT_TRUE(servegen);
  trace::ServeGenDraw wanted;
  wanted.length = 60s;
  EXPECT_NEAR(static_cast<double>(play(trace::draw(*servegen, wanted, 1)).tasks), 120, 80);
}

TEST(LoadWorld, RecordedSessionsOfAgentsArePlayedAsOftenAsTheyBegin) {
  const auto agents = trace::read_agentic(
      "session,subagent,call,t_s,think_s,api_s,input_tokens,output_tokens,prefix_of_call,"
      "shared_blocks\n"
      "7,,0,0.0,0.0,7.5,3000,20,-1,0\n7,,1,19.0,2.0,9.0,3100,30,0,46\n"
      "8,,0,0.0,0.0,,2000,5,-1,0\n",
      "session,tool_tokens,system_tokens\n7,500,100\n8,500,90\n");
  ASSERT_TRUE(agents);
  Scenario s = calm();
  s.load.sessions_per_second = 2;
  s.load.lasts = 60s;
  s.load.requests = 1'000'000;
  share(s, *agents);
  const Report report = run_clean(s);
  expect_all_done(report);
  EXPECT_NEAR(static_cast<double>(report.tasks), 180, 60);  // one and a half a session
}

TEST(LoadWorld, ATideOfSessionsFollowsItsCurve) {
  const auto tide = trace::read_tidal("hour_utc8,quarter,relative_traffic\n0,0,1\n0,1,0\n");
  ASSERT_TRUE(tide);
  Scenario s = calm();
  s.load.follow_up = 0;
  s.load.sessions_per_second = 0.2;
  s.load.arrivals.curve = *tide;
  s.load.lasts = std::chrono::minutes(29);
  const Report report = run_clean(s);
  expect_all_done(report);
  EXPECT_NEAR(static_cast<double>(report.tasks), 180, 60);  // of the first quarter alone
  EXPECT_LT(report.elapsed, std::chrono::minutes(16));
}

TEST(LoadWorld, AnOpenLoopDoesNotWaitForSlowEnginesAndSessionsDo) {
  // Engines that stand still for a minute: who waits for answers comes a minute later.
  const auto minute_lost = [](Scenario s) {
    for (std::size_t i = 0; i < 4; ++i) {
      s.faults.push_back({Fault::Kind::Stall, Instant{} + 2s, 60s, i, 1});
    }
    s.first_token_timeout = s.idle_timeout = 100s;
    return s;
  };
  Scenario open = calm();
  Rng rng(1, "trace");
  open.load.requests = 200;
  share(open, random_open_loop(open.load, 1, rng));  // 200 s
  const Report quick = run_clean(open);
  const Report stalled = run_clean(minute_lost(open));
  expect_all_done(stalled);
  EXPECT_LT(stalled.elapsed, quick.elapsed + 20s) << text(stalled);

  Scenario closed = calm();
  closed.load.sessions_at_once = 3;
  closed.load.ramp = 0s;
  closed.load.requests = 200;
  share(closed, random_sessions(closed.load, rng));
  const Report free = run_clean(closed);
  const Report waiting = run_clean(minute_lost(closed));
  expect_all_done(waiting);
  EXPECT_GT(waiting.elapsed, free.elapsed + 50s) << text(waiting);
}

// One session of two calls; the second repeats the first one's prompt and long answer.
trace::Trace long_answer() {
  trace::Trace trace;
  trace.pieces = {{-1, 1, 96, false}, {0, 2, 1600, false}, {1, 3, 20, false}};
  trace::Call call;
  call.last = 0;
  call.prompt_tokens = 96;
  call.output_tokens = 1600;
  call.answer = 2;
  trace.calls.push_back(call);
  call.last = 2;
  call.prompt_tokens = 96 + 1600 + 20;
  call.output_tokens = 5;
  call.answer = 4;
  call.after = 0;
  trace.calls.push_back(call);
  trace.sessions = {{0, 2, Duration::zero()}};
  return trace;
}

TEST(LoadWorld, ASessionFindsItsPromptAndItsAnswerAgain) {
  Scenario s = calm();
  s.groups[0].count = 1;
  share(s, long_answer());
  const Report report = run_clean(s);
  expect_all_done(report);
  EXPECT_EQ(report.tasks, 2u);
  // All but what fills no whole block, and the answer's last token, which is in no cache.
  const std::int64_t block = s.groups[0].spec.block_tokens;
  EXPECT_GE(report.engines.cached_tokens, 96 + 1600 - block - 1) << text(report);
}

TEST(LoadWorld, ARequestThatFailedForNobodysFaultIsTriedAgain) {
  Scenario s = calm();
  for (std::size_t i = 0; i < 4; ++i) {
    s.faults.push_back({Fault::Kind::Die, Instant{} + 5s, 1s, i, 1});
  }
  s.load.sdk.retries_max = 0;
  const Report once = run_clean(s);
  EXPECT_EQ(once.client_retries, 0u);
  EXPECT_LT(once.tasks_done, once.tasks) << text(once);
  s.load.sdk.retries_max = 5;
  const Report again = run_clean(s);
  EXPECT_GT(again.client_retries, 0u);
  EXPECT_EQ(again.arrived, again.tasks + again.client_retries);
  EXPECT_GT(again.tasks_done, once.tasks_done) << text(again);
}

TEST(LoadWorld, OverloadBringsMoreRequestsThanTasks) {
  Scenario s = calm();
  s.groups[0].count = 1;
  s.groups[0].concurrency_max = 4;
  s.config.admission.queue_requests_max = 4;
  s.load.sessions_per_second = 100;
  const Report report = run_clean(s);
  EXPECT_GT(report.client_retries, 100u) << text(report);
  EXPECT_EQ(report.arrived, report.tasks + report.client_retries);
  EXPECT_EQ(report.tasks, 400u);
  EXPECT_LT(report.tasks_done, report.tasks);
  // A full queue says when to come again; a library that takes no such advice does not come.
  s.load.sdk.retry_after_max = 0s;
  EXPECT_EQ(run_clean(s).client_retries, 0u);
}

TEST(LoadWorld, ALibraryThatWaitsTooLongHangsUp) {
  Scenario s = calm();
  for (std::size_t i = 0; i < 4; ++i) {
    s.faults.push_back({Fault::Kind::Stall, Instant{} + 5s, 20s, i, 1});
  }
  s.load.sdk.timeout = 3s;
  const Report report = run_clean(s);
  EXPECT_GT(report.client_timeouts, 0u) << text(report);
  EXPECT_GT(report.client_retries, 0u);
  EXPECT_GE(report.client_timeouts, report.count(Outcome::ClientGone));
  EXPECT_LT(report.tasks_done, report.tasks);
  s.load.sdk.timeout = 600s;
  expect_all_done(run_clean(s));
}

TEST(LoadWorld, AnAnswerThatHasBegunIsWaitedFor) {
  Scenario s = calm();
  s.load.plain = s.load.capped = 0;
  s.load.answer = {600, 0, 1, 600};  // takes several seconds and begins in a fraction of one
  s.load.sessions_per_second = 1;
  s.load.requests = 100;
  s.load.sdk.timeout = 3s;
  s.load.pressers = 1;
  s.load.impatience = 5s;
  const Report report = run_clean(s);
  EXPECT_GT(report.e2e.quantile(0.1), 3.5) << text(report);
  EXPECT_LT(report.ttft.quantile(0.9), 1) << text(report);
  EXPECT_EQ(report.client_timeouts, 0u);
  EXPECT_LT(report.pressed, 20u) << text(report);
}

TEST(LoadWorld, AUserWhoAsksTwiceHasOneTask) {
  Scenario s = calm();
  s.load.pressers = 0.5;
  s.load.impatience = 20ms;
  const Report report = run_clean(s);
  EXPECT_GT(report.pressed, 50u) << text(report);
  EXPECT_EQ(report.tasks, 400u);
  EXPECT_EQ(report.tasks_done, report.tasks);
  EXPECT_EQ(report.arrived, report.tasks + report.pressed);
}

TEST(LoadWorld, AUserWhoLeavesWhileALibraryWaitsIsNotTriedFor) {
  Scenario s = calm();
  s.faults.push_back({Fault::Kind::Drain, Instant{}, {}, 0, 1});  // everybody is refused at once
  const Report stay = run_clean(s);
  EXPECT_GT(stay.client_retries, 100u);
  s.load.leavers = 1;
  s.load.patience = 20ms;  // the first retry comes after 375 ms at least
  const Report leave = run_clean(s);
  EXPECT_EQ(leave.client_retries, 0u) << text(leave);
}

TEST(LoadWorld, AUserWhoLeavesTriesNothingMore) {
  Scenario s = calm();
  s.load.leavers = 1;
  s.load.patience = 1ms;
  const Report report = run_clean(s);
  EXPECT_EQ(report.client_retries, 0u);
  EXPECT_LT(report.tasks_done, 40u) << text(report);
  EXPECT_EQ(report.arrived, report.tasks);
}

}  // namespace
}  // namespace signalbox::sim
