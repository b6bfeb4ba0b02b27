// SPDX-License-Identifier: Apache-2.0
// Goal: lengths are learnt per combination, borrowed from wider levels at first, capped, bounded.
// Method: combinations with known lengths.
#include "core/perf/output_length.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "base/rng.h"

namespace signalbox::perf {
namespace {

LengthKey key(std::uint32_t tenant, std::uint32_t model, std::uint32_t route) {
  return {model::TenantId(tenant), model::ModelId(model), model::RouteId(route)};
}

TEST(OutputLengths, BeginsWithThePrior) {
  const OutputLengths lengths;
  EXPECT_NEAR(lengths.estimate(key(1, 1, 1), 0).p50, 150, 1);
  EXPECT_NEAR(lengths.estimate(key(1, 1, 1), 0).mean, 150 * std::exp(0.72), 1);
  EXPECT_LT(lengths.estimate(key(1, 1, 1), 100).mean, 100);
  EXPECT_GT(lengths.estimate(key(1, 1, 1), 100).mean, 70);
}

TEST(OutputLengths, LearnsEachCombination) {
  OutputLengths lengths;
  Rng rng(1, "lengths");
  for (int i = 0; i < 2000; ++i) {
    lengths.observe(key(1, 1, 1), static_cast<std::int64_t>(20 * std::exp(0.5 * rng.normal())) + 1);
    lengths.observe(key(2, 1, 1), static_cast<std::int64_t>(800 * std::exp(0.5 * rng.normal())));
  }
  EXPECT_NEAR(lengths.estimate(key(1, 1, 1), 0).p50, 20, 3);
  EXPECT_NEAR(lengths.estimate(key(2, 1, 1), 0).p50, 800, 80);
  EXPECT_NEAR(lengths.estimate(key(2, 1, 1), 0).mean, 800 * std::exp(0.125), 80);
  EXPECT_NEAR(lengths.estimate(key(2, 1, 1), 0).sd, 480, 120);
  EXPECT_GT(lengths.estimate(key(2, 1, 1), 0).p90, 1300);
}

TEST(OutputLengths, BorrowsFromTheWiderLevel) {
  OutputLengths lengths;
  for (int i = 0; i < 500; ++i) lengths.observe(key(1, 1, 1), 1000);
  EXPECT_NEAR(lengths.estimate(key(9, 1, 1), 0).p50, 1000, 100);  // same model and route
  EXPECT_NEAR(lengths.estimate(key(9, 1, 9), 0).p50, 1000, 150);  // same model
  for (int i = 0; i < 200; ++i) lengths.observe(key(9, 1, 1), 10);
  EXPECT_LT(lengths.estimate(key(9, 1, 1), 0).p50, 20);
}

TEST(OutputLengths, FollowsAChange) {
  OutputLengths lengths;
  for (int i = 0; i < 3000; ++i) lengths.observe(key(1, 1, 1), 50);
  for (int i = 0; i < 2500; ++i) lengths.observe(key(1, 1, 1), 900);
  EXPECT_NEAR(lengths.estimate(key(1, 1, 1), 0).mean, 880, 60);
}

TEST(OutputLengths, ShortCapsDoNotTeachShortAnswers) {
  OutputLengths lengths;
  Rng rng(3, "caps");
  double seen = 0;
  for (int i = 0; i < 2000; ++i) {
    const double length = 200 * std::exp(0.5 * rng.normal());
    const std::int64_t cap = rng.chance(0.5) ? 8 : rng.chance(0.5) ? 128 : 1024;
    lengths.observe(key(1, 1, 1), std::min<std::int64_t>(cap, std::llround(length)), cap);
    seen += std::min(128.0, length) / 2000;
  }
  EXPECT_NEAR(lengths.estimate(key(1, 1, 1), 8).mean, 8, 0.1);
  EXPECT_NEAR(lengths.estimate(key(1, 1, 1), 128).mean, seen, 6);
  EXPECT_NEAR(lengths.estimate(key(1, 1, 1), 1024).mean, 225, 40);
}

TEST(OutputLengths, AnswersThatAreAlwaysCutFillTheirCap) {
  OutputLengths lengths;
  for (int i = 0; i < 50; ++i) {
    for (std::int64_t cap : {8, 16, 32, 64, 96}) lengths.observe(key(1, 1, 1), cap, cap);
  }
  EXPECT_NEAR(lengths.estimate(key(1, 1, 1), 8).mean, 8, 0.1);
  EXPECT_GT(lengths.estimate(key(1, 1, 1), 96).mean, 85);
}

TEST(OutputLengths, RemembersABoundedNumberOfCombinations) {
  OutputLengthsConfig config;
  config.keys_max = 50;
  OutputLengths lengths(config);
  for (std::uint32_t i = 1; i <= 10'000; ++i) lengths.observe(key(i, 1, 1), 70);
  EXPECT_EQ(lengths.keys(), 50u);
  // Wide levels are used by all and stay.
  EXPECT_NEAR(lengths.estimate(key(1, 1, 1), 0).p50, 70, 6);
}

RC_GTEST_PROP(OutputLengthsLaw, EstimatesAreOrderedAndCapped, (std::uint64_t seed)) {
  Rng rng(seed, "law");
  OutputLengths lengths;
  const int n = static_cast<int>(rng.below(300));
  for (int i = 0; i < n; ++i) {
    lengths.observe(key(1 + static_cast<std::uint32_t>(rng.below(3)), 1, 1),
                    static_cast<std::int64_t>(std::exp(rng.uniform(-1, 15))));
  }
  const auto cap = static_cast<std::int64_t>(std::exp(rng.uniform(0, 14)));
  const auto e = lengths.estimate(key(1, 1, 1), cap);
  RC_ASSERT(e.p50 <= e.p90);
  for (double x : {e.mean, e.p50, e.p90}) {
    RC_ASSERT(x >= 1);
    RC_ASSERT(x <= static_cast<double>(cap) * (1 + 1e-9));
  }
  RC_ASSERT(std::isfinite(e.sd));
}

}  // namespace
}  // namespace signalbox::perf
