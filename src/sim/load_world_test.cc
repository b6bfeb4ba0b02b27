// SPDX-License-Identifier: Apache-2.0
// Goal: every kind of load and of client runs through the world with every checker on, and behaves
// as it is described. Method: one calm fleet, one load a test, small.
#include <gtest/gtest.h>

#include "sim/random_load.h"
#include "sim/run.h"

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
      s.load.arrivals.curve = {{0s, 0.5}, {20s, 1.5}, {40s, 0.5}};
      s.load.arrivals.period = 40s;
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

TEST(LoadWorld, SessionsOfAgentsFindTheirPromptsAndAnswersAgain) {
  Scenario s = calm();
  s.load.turn = {20, 0, 1, 100};
  s.load.answer = {400, 0, 1, 400};  // answers make the most of later prompts
  s.load.plain = s.load.capped = 0;
  s.load.adapters = 0;
  s.groups[0].count = 1;
  s.load.sessions_at_once = 2;
  s.load.requests = 100;
  Rng rng(1, "trace");
  share(s, random_sessions(s.load, rng));
  const Report report = run_clean(s);
  expect_all_done(report);
  double longer = 0, all = 0;  // prompt tokens that an earlier call holds, of sessions played once
  for (const trace::Call& call : s.load.trace->calls) {
    all += static_cast<double>(call.prompt_tokens);
    if (call.after < 0) continue;
    const auto& earlier = s.load.trace->calls[static_cast<std::size_t>(call.after)];
    longer += static_cast<double>(earlier.prompt_tokens + earlier.output_tokens);
  }
  EXPECT_GT(report.cache_hit(), 0.9 * longer / all) << text(report);
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
