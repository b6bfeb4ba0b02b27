// SPDX-License-Identifier: Apache-2.0
// Goal: whole runs keep every invariant, reproduce exactly, and behave as physics says. Method: the
// seed draws fleets, settings, load, faults and disorder; the checkers watch every event.
#include "sim/run.h"

#include <gtest/gtest.h>

namespace signalbox::sim {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint64_t kSeeds = 20;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr std::uint64_t kSeeds = 20;
#else
constexpr std::uint64_t kSeeds = 200;
#endif
#else
constexpr std::uint64_t kSeeds = 200;
#endif

void expect_clean(const Report& report) {
  EXPECT_TRUE(report.violations.empty()) << text(report);
}

// Eight engines well below their capacity; nothing fails.
Scenario calm() {
  Scenario s;
  s.seed = 11;
  s.groups[0].count = 8;
  s.groups[0].spec.kv_tokens = 200'000;
  s.load.requests = 1000;
  s.load.sessions_per_second = 15;
  s.load.leavers = 0;
  s.load.answer = {60, 0.6, 1, 400};
  s.load.system = {1500, 0.3, 100, 3000};
  s.config.decisions_kept = 100;
  return s;
}

class RandomRuns : public testing::TestWithParam<std::uint64_t> {};

TEST_P(RandomRuns, KeepEveryInvariant) {
  constexpr std::uint64_t kPart = 10;
  for (std::uint64_t seed = GetParam(); seed <= kSeeds; seed += kPart) {
    const Report report = run(random_scenario(seed, 2000));
    expect_clean(report);
    EXPECT_GT(report.arrived, 0u) << "seed " << seed;
    if (!report.violations.empty()) return;
  }
}

// More than one slice of a queue waited apart, and the rest starved beside idle engines.
TEST(RunsThatFailedOnce, KeepEveryInvariant) {
  for (const std::uint64_t seed : {21021u, 22347u, 22399u, 25694u}) {
    expect_clean(run(random_scenario(seed, 1500)));
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomRuns, testing::Range<std::uint64_t>(1, 11));

TEST(Sim, TheSameSeedGivesTheSameActions) {
  for (const std::uint64_t seed : {3u, 14u, 15u}) {
    const Report first = run(random_scenario(seed, 500));
    const Report second = run(random_scenario(seed, 500));
    EXPECT_EQ(first.digest, second.digest);
    EXPECT_EQ(text(first), text(second));
  }
}

TEST(Sim, AnotherSeedGivesOtherActions) {
  Scenario s = calm();
  const Report first = run(s);
  ++s.seed;
  EXPECT_NE(first.digest, run(s).digest);
}

TEST(Sim, ACalmFleetCompletesEverythingInTime) {
  const Report report = run(calm());
  expect_clean(report);
  EXPECT_EQ(report.count(model::Outcome::Completed), 1000u);
  EXPECT_GE(report.good, 990u) << text(report);
  EXPECT_EQ(report.retries, 0u);
}

TEST(Sim, SharedPrefixesAreFoundAgain) {
  Scenario s = calm();
  const Report shared = run(s);
  s.load.follow_up = 0;
  s.load.system_prompts = 5000;
  s.load.zipf = 0;
  const Report unique = run(s);
  EXPECT_GT(shared.cache_hit(), 0.5) << text(shared);
  EXPECT_LT(unique.cache_hit(), 0.1) << text(unique);
}

TEST(Sim, AnEngineThatDiesCostsRetriesNotAnswers) {
  Scenario s = calm();
  s.load.plain = 1;  // nothing was delivered, so everything can be tried again
  for (std::size_t i = 0; i < 4; ++i) {
    s.faults.push_back({Fault::Kind::Die, Instant{} + std::chrono::seconds(5 + 8 * i),
                        std::chrono::seconds(4), i, 1});
  }
  const Report report = run(s);
  expect_clean(report);
  EXPECT_GT(report.retries, 0u);
  EXPECT_GE(report.count(model::Outcome::Completed), 999u) << text(report);
}

TEST(Sim, PredictionsComeNearTheHiddenTruth) {
  Scenario s = calm();
  s.load.requests = 1500;
  s.groups[0].dialect.timings = true;
  const Report report = run(s);
  expect_clean(report);
  EXPECT_LT(report.ttft_error, 0.35) << text(report);
}

TEST(Sim, SmallMemoryIsMetWithPreemptionsAndOverloadWithQueues) {
  Scenario s = calm();
  s.groups[0].count = 2;
  s.groups[0].spec.kv_tokens = 12'000;
  s.load.sessions_per_second = 30;
  s.load.answer = {400, 0.3, 1, 800};
  s.config.admission.queue_requests_max = 50;
  const Report report = run(s);
  expect_clean(report);
  EXPECT_GT(report.engines.preemptions, 0);
  EXPECT_GT(report.count(model::Outcome::QueueFull), 0u) << text(report);
}

TEST(Sim, AGatewayWhoseDrainIsOverSendsEverybodyHome) {
  Scenario s = calm();
  s.faults.push_back({Fault::Kind::Drain, Instant{} + std::chrono::seconds(20), {}, 0, 1});
  const Report report = run(s);
  expect_clean(report);
  EXPECT_GT(report.count(model::Outcome::Draining), 0u);
  EXPECT_EQ(report.count(model::Outcome::Draining) + report.count(model::Outcome::Completed),
            report.arrived);
}

TEST(Sim, TheSeriesAddsUpToTheReport) {
  const Report report = run(calm());
  const Bucket all = report.series.between({}, Duration::max());
  EXPECT_EQ(static_cast<std::uint64_t>(all.arrived), report.arrived);
  EXPECT_EQ(static_cast<std::uint64_t>(all.answered), report.count(model::Outcome::Completed));
  EXPECT_EQ(static_cast<std::uint64_t>(all.good), report.good);
  EXPECT_DOUBLE_EQ(all.mean(&Moment::instances), 8);
  EXPECT_GT(all.mean(&Moment::running), 1);
  EXPECT_GT(all.mean(&Moment::kv), 0);
  EXPECT_LT(all.kv_max, 1);
}

TEST(Sim, TheFleetCostsWhatItsTimeCosts) {
  Scenario s = calm();
  const Report whole = run(s);
  const double seconds = to_seconds(whole.elapsed);
  EXPECT_NEAR(whole.engine_seconds, 8 * seconds, 1e-6 * seconds);
  EXPECT_NEAR(whole.usd, 8 * seconds / 3600 * 2, 1e-9);
  EXPECT_LT(whole.engines.busy_seconds, whole.engine_seconds);
  s.faults.push_back({Fault::Kind::Leave, Instant{} + std::chrono::seconds(10),
                      std::chrono::seconds(20), 3, 1});
  const Report less = run(s);
  EXPECT_NEAR(less.engine_seconds, 8 * to_seconds(less.elapsed) - 20, 1e-6 * seconds);
}

TEST(Sim, TokensAreInAnAnswerOrLost) {
  Scenario s = calm();
  s.load.plain = 0;
  const Report whole = run(s);
  EXPECT_EQ(whole.answer_tokens, whole.engines.generated_tokens);
  EXPECT_EQ(whole.lost_tokens, 0);
  EXPECT_GT(whole.tpot.count(), 900u);
  EXPECT_LT(whole.tpot.mean() * 60, whole.e2e.mean());
  s.faults.push_back({Fault::Kind::Cut, Instant{} + std::chrono::seconds(5),
                      std::chrono::seconds(30), 3, 0.9});
  const Report cut = run(s);
  EXPECT_GT(cut.count(model::Outcome::Truncated), 0u);
  EXPECT_GT(cut.lost_tokens, 0);
  EXPECT_LE(cut.lost_tokens + cut.answer_tokens, cut.engines.generated_tokens);
}

TEST(Sim, AFaultHealsTheEngineThatItHitThoughAnotherHasLeft) {
  Scenario s = calm();
  const auto at = [](int second) { return Instant{} + std::chrono::seconds(second); };
  s.faults.push_back({Fault::Kind::Leave, at(5), std::chrono::seconds(5), 1, 1});
  s.faults.push_back({Fault::Kind::Die, at(7), std::chrono::seconds(8), 5, 1});
  const Report report = run(s);
  const auto up = [&](int from, int until) {
    return report.series.between(std::chrono::seconds(from), std::chrono::seconds(until))
        .mean(&Moment::instances);
  };
  EXPECT_DOUBLE_EQ(up(8, 10), 6);
  EXPECT_DOUBLE_EQ(up(11, 15), 7);
  EXPECT_DOUBLE_EQ(up(16, 60), 8);
}

}  // namespace
}  // namespace signalbox::sim
