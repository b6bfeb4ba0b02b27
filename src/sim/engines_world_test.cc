// SPDX-License-Identifier: Apache-2.0
// Goal: ranks, prefill and decode apart, links, starts and sleep behave in a whole world as physics
// says, and every invariant holds. Method: small fleets well below their capacity, one thing
// changed at a time.
#include <gtest/gtest.h>

#include "sim/run.h"

namespace signalbox::sim {
namespace {

using namespace std::chrono_literals;

constexpr auto kCompleted = model::Outcome::Completed;

Instant at(int second) { return Instant{} + std::chrono::seconds(second); }

void expect_clean(const Report& report) {
  EXPECT_TRUE(report.violations.empty()) << text(report);
}

// Four engines, nobody leaves, all is streamed.
Scenario calm() {
  Scenario s;
  s.seed = 5;
  s.groups[0].count = 4;
  s.groups[0].spec.kv_tokens = 200'000;
  s.load.requests = 600;
  s.load.sessions_per_second = 8;
  s.load.leavers = 0;
  s.load.plain = 0;
  s.load.answer = {60, 0.6, 1, 400};
  s.load.system = {1500, 0.3, 100, 3000};
  s.load.tenants = 0;
  return s;
}

// Two that prefill and two that decode.
Scenario apart(double gbps) {
  Scenario s = calm();
  s.groups[0].count = 2;
  s.groups[0].role = model::Role::Prefill;
  s.groups[0].link.gbps = gbps;
  s.groups.push_back(s.groups[0]);
  s.groups[1].role = model::Role::Decode;
  return s;
}

TEST(Ranks, AreEndpointsOfTheirOwnAndTheEngineIsPaidOnce) {
  Scenario s = calm();
  s.groups[0].count = 2;
  s.groups[0].spec.ranks = 3;
  const Report report = run(s);
  expect_clean(report);
  EXPECT_EQ(report.count(kCompleted), report.arrived) << text(report);
  EXPECT_NEAR(report.usd, 2 * to_seconds(report.elapsed) / 3600 * 2, 1e-9);
  s.groups[0].pins_ranks = false;
  const Report unpinned = run(s);
  expect_clean(unpinned);
  EXPECT_EQ(unpinned.count(kCompleted), unpinned.arrived);
  EXPECT_NE(unpinned.digest, report.digest);
}

TEST(Handover, EveryPromptTravelsOnceAndEveryTokenCountsOnce) {
  const Report report = run(apart(100));
  expect_clean(report);
  EXPECT_EQ(report.count(kCompleted), report.arrived) << text(report);
  EXPECT_EQ(report.transfer.count(), report.arrived);
  EXPECT_EQ(report.answer_tokens, report.engines.generated_tokens);
  EXPECT_GT(report.ttft.mean(), report.transfer.mean());
}

TEST(Handover, ANarrowLinkIsInTheTimeToFirstToken) {
  const Report wide = run(apart(400));
  const Report narrow = run(apart(20));
  expect_clean(narrow);
  const double more = narrow.transfer.mean() - wide.transfer.mean();
  EXPECT_GT(more, 0.1);
  EXPECT_GT(narrow.ttft.mean() - wide.ttft.mean(), 0.7 * more) << text(narrow);
}

TEST(Handover, EitherHalfMayDie) {
  for (const std::size_t engine : {0u, 1u, 2u, 3u}) {
    Scenario s = apart(50);
    s.faults.push_back({Fault::Kind::Die, at(10), 8s, engine, 1});
    const Report report = run(s);
    expect_clean(report);
    EXPECT_GE(report.count(kCompleted), report.arrived * 9 / 10) << text(report);
  }
}

TEST(Handover, WithoutAnybodyToDecodeRequestsFailAndNothingIsLeftBehind) {
  Scenario s = apart(100);
  s.groups[1].count = 1;
  s.faults.push_back({Fault::Kind::Die, at(10), 20s, 2, 1});
  const Report report = run(s);
  expect_clean(report);
  EXPECT_LT(report.count(kCompleted), report.arrived);
  EXPECT_GT(report.count(kCompleted), 0u);
}

TEST(Links, WhatIsCutOffGoesOnAndItsAnswersComeLater) {
  Scenario s = calm();
  s.faults.push_back({Fault::Kind::Sever, at(20), 5s, 1, 1});
  const Report report = run(s);
  expect_clean(report);
  EXPECT_EQ(report.count(kCompleted), report.arrived) << text(report);
  EXPECT_EQ(report.lost_tokens, 0);
  EXPECT_GT(report.e2e.max(), run(calm()).e2e.max());
}

TEST(Links, WhatIsCutOffForLongIsGivenUp) {
  Scenario s = calm();
  s.idle_timeout = 3s;
  s.first_token_timeout = 3s;
  s.faults.push_back({Fault::Kind::Sever, at(20), 20s, 1, 1});
  const Report report = run(s);
  expect_clean(report);
  EXPECT_GT(report.count(model::Outcome::Truncated), 0u) << text(report);
  EXPECT_GT(report.lost_tokens, 0);
}

TEST(Links, DelayIsInEveryAnswerAndDropsAreRetried) {
  Scenario s = calm();
  for (std::size_t i = 0; i < 4; ++i) {
    s.faults.push_back({Fault::Kind::Delay, at(0), 1000s, i, 500});
  }
  const Report slow = run(s);
  expect_clean(slow);
  const Report plain = run(calm());
  // There and back: twice 150 ms instead of 0.3 ms.
  EXPECT_NEAR(slow.ttft.mean() - plain.ttft.mean(), 0.3, 0.1) << text(slow);
  Scenario lossy = calm();
  lossy.faults.push_back({Fault::Kind::Drop, at(5), 60s, 2, 0.5});
  const Report dropped = run(lossy);
  expect_clean(dropped);
  EXPECT_GT(dropped.retries, 0u);
  EXPECT_EQ(dropped.count(kCompleted), dropped.arrived) << text(dropped);
}

TEST(Lives, AStartTakesItsStages) {
  Scenario s = calm();
  s.faults.push_back({Fault::Kind::Die, at(10), 1s, 0, 1});
  const Report at_once = run(s);
  s.groups[0].start.load = 20s;
  s.groups[0].start.compile = 50s;
  s.groups[0].start.spread = 0;
  const Report staged = run(s);
  expect_clean(staged);
  const auto up = [](const Report& r, int from, int until) {
    return r.series.between(std::chrono::seconds(from), std::chrono::seconds(until))
        .mean(&Moment::instances);
  };
  EXPECT_DOUBLE_EQ(up(at_once, 13, 40), 4);
  EXPECT_DOUBLE_EQ(up(staged, 13, 39), 3);  // 20 s, and a fifth of 50 s
  EXPECT_DOUBLE_EQ(up(staged, 43, 60), 4);
}

TEST(Lives, ANoticeOfReclaimSavesWhatRuns) {
  Scenario s = calm();
  s.groups[0].start.provision = 15s;
  s.faults.push_back({Fault::Kind::Reclaim, at(15), 30s, 1, 1});
  const Report noticed = run(s);
  expect_clean(noticed);
  EXPECT_EQ(noticed.count(kCompleted), noticed.arrived) << text(noticed);
  EXPECT_EQ(noticed.lost_tokens, 0);
  s.faults[0].lasts = 10ms;
  const Report sudden = run(s);
  expect_clean(sudden);
  EXPECT_GT(sudden.lost_tokens, 0);
}

TEST(Lives, ASleeperRefusesAndWakes) {
  Scenario s = calm();
  s.groups[0].start.wake = 3s;
  s.faults.push_back({Fault::Kind::Sleep, at(10), 20s, 1, 1});
  const Report report = run(s);
  expect_clean(report);
  EXPECT_GE(report.count(kCompleted), report.arrived * 95 / 100) << text(report);
}

TEST(Features, ShareTheWorldWithEverythingElse) {
  Scenario s = calm();
  s.groups[0].spec.draft_tokens = 3;
  const Report plain = run(calm());
  const Report drafted = run(s);
  expect_clean(drafted);
  EXPECT_LT(drafted.tpot.mean(), plain.tpot.mean());
  EXPECT_EQ(drafted.answer_tokens, drafted.engines.generated_tokens);
  s = calm();
  s.load.adapters = 0.6;
  s.groups[0].spec.lora_slots = 1;
  const Report adapted = run(s);
  expect_clean(adapted);
  EXPECT_GT(adapted.engines.lora_loads, 4);
  s = calm();
  s.groups[0].spec.kv_tokens = 20'000;
  const Report small = run(s);
  s.groups[0].spec.host_kv_tokens = 400'000;
  const Report tiered = run(s);
  expect_clean(tiered);
  EXPECT_GT(tiered.engines.host_tokens, 0);
  EXPECT_GT(tiered.cache_hit(), small.cache_hit());
}

}  // namespace
}  // namespace signalbox::sim
