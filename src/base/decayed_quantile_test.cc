// SPDX-License-Identifier: Apache-2.0
// Goal: the sketch follows a stream that changes and forgets at the stated rate.
// Method: streams whose weighted quantiles can be computed exactly beside it.
#include "base/decayed_quantile.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/rng.h"

namespace signalbox {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

TEST(DecayedQuantile, EmptyAnswersZero) {
  const auto s = DecayedQuantile::by_samples(10, {});
  EXPECT_TRUE(s.empty());
  EXPECT_EQ(s.quantile(0.5), 0);
  EXPECT_EQ(s.mean(), 0);
  EXPECT_EQ(s.weight(), 0);
}

TEST(DecayedQuantile, ForgetsHalfOfAnOldLevelInOneHalfLife) {
  auto s = DecayedQuantile::by_samples(50, {});
  for (int i = 0; i < 1000; ++i) s.record(10);
  for (int i = 0; i < 50; ++i) s.record(1000);
  EXPECT_NEAR(s.mean(), 0.5 * 10 + 0.5 * 1000, 25);
  for (int i = 0; i < 450; ++i) s.record(1000);
  EXPECT_NEAR(s.quantile(0.01), 1000, 63);
}

TEST(DecayedQuantile, WeightIsTheEffectiveNumberOfSamples) {
  auto s = DecayedQuantile::by_samples(100, {});
  s.record(5);
  EXPECT_NEAR(s.weight(), 1, 1e-9);
  for (int i = 0; i < 100'000; ++i) s.record(5);
  EXPECT_NEAR(s.weight(), 1 / (1 - std::exp2(-0.01)), 0.5);
}

TEST(DecayedQuantile, DecaysByTimeAndIgnoresTimeThatRunsBackwards) {
  auto s = DecayedQuantile::by_time(seconds(60), {});
  const Instant start = Instant{} + hours(5);
  for (int i = 0; i < 100; ++i) s.record(10, start);
  s.record(1000, start + seconds(600));  // ten half-lives: the old hundred weigh 0.1
  EXPECT_NEAR(s.quantile(0.5), 1000, 63);
  EXPECT_NEAR(s.weight(), 1 + 100.0 / 1024, 1e-3);
  s.record(1000, start);
  EXPECT_NEAR(s.weight(), 2 + 100.0 / 1024, 1e-3);
  s.record(7, start + hours(24 * 365));
  EXPECT_NEAR(s.quantile(0), 7, 0.5);
  EXPECT_NEAR(s.weight(), 1, 1e-9);
}

RC_GTEST_PROP(DecayedQuantileLaw, AgreesWithTheExactWeightedQuantile, ()) {
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const double half_life = *rc::gen::inRange(5, 300);
  const int n = *rc::gen::inRange(1, 400);
  Rng rng(seed, "values");
  auto s = DecayedQuantile::by_samples(half_life, {});
  std::vector<std::pair<double, double>> exact;  // value, weight
  for (int i = 0; i < n; ++i) {
    const double v = std::exp(rng.uniform(0, 12));
    s.record(v);
    exact.emplace_back(v, std::exp2(i / half_life));
  }
  std::sort(exact.begin(), exact.end());
  double total = 0;
  for (const auto& e : exact) total += e.second;
  const double q = rng.uniform(0.02, 0.98);
  const auto value_at = [&](double share) {
    double seen = 0;
    for (const auto& [v, w] : exact) {
      if ((seen += w) >= share * total) return v;
    }
    return exact.back().first;
  };
  const double got = s.quantile(q);
  RC_ASSERT(got >= value_at(q - 1e-4) * (1 - 0.0626));
  RC_ASSERT(got <= value_at(q + 1e-4) * (1 + 0.0626));
}

}  // namespace
}  // namespace signalbox
