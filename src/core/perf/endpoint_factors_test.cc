// SPDX-License-Identifier: Apache-2.0
// Endpoints against their pool: what is noise stays noise, what is slow is found.
#include "core/perf/endpoint_factors.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/rng.h"

namespace signalbox::perf {
namespace {

using model::EndpointId;

constexpr int kEndpoints = 4;

class Pool {
 public:
  // One observation of each endpoint, scattered by `scatter` around its true factor.
  // `burst` makes all of them late.
  void see(double scatter, double slow_factor, double burst = 0) {
    now_ += std::chrono::milliseconds(500);
    for (std::uint32_t i = 1; i <= kEndpoints; ++i) {
      const double truth = i == 1 ? slow_factor : 1;
      const double ratio = 1.3 * truth * std::exp(burst + scatter * rng_.normal());
      factors_.observe(EndpointId(i), ratio, now_);
    }
  }

  double factor(std::uint32_t i, Duration later = {}) const {
    return factors_.factor(EndpointId(i), now_ + later);
  }

 private:
  EndpointFactors factors_{{}};
  Rng rng_{11, "factors"};
  Instant now_{};
};

TEST(EndpointFactors, NoiseIsNoDifference) {
  Pool pool;
  int average = 0, asked = 0;
  for (int i = 0; i < 500; ++i) {
    pool.see(0.1, 1);
    if (i < 10) continue;
    for (std::uint32_t e = 1; e <= kEndpoints; ++e) {
      ++asked;
      average += pool.factor(e) == 1 ? 1 : 0;
      EXPECT_NEAR(pool.factor(e), 1, 0.06);
    }
  }
  EXPECT_GT(average, asked * 9 / 10);
}

TEST(EndpointFactors, FindsTheSlowOneWithinFourPeriods) {
  Pool pool;
  for (int i = 0; i < 20; ++i) pool.see(0.1, 1.5);
  EXPECT_GT(pool.factor(1), 1.3);
  for (int i = 0; i < 100; ++i) pool.see(0.1, 1.5);
  EXPECT_NEAR(pool.factor(1), 1.5, 0.1);
  for (std::uint32_t e = 2; e <= kEndpoints; ++e) EXPECT_NEAR(pool.factor(e), 1, 0.06);
}

// What makes all late together is nobody's own, however wild it is.
TEST(EndpointFactors, ABurstIsThePools) {
  Pool pool;
  Rng rng(12, "bursts");
  double burst = 0;
  for (int i = 0; i < 600; ++i) {
    if (i % 15 == 0) burst = rng.normal();
    pool.see(0.3, 2, burst);
    if (i < 100) continue;
    EXPECT_NEAR(pool.factor(1), 2, 0.7) << i;
    for (std::uint32_t e = 2; e <= kEndpoints; ++e) EXPECT_NEAR(pool.factor(e), 1, 0.35) << i;
  }
}

TEST(EndpointFactors, FollowsAnEndpointThatRecovers) {
  Pool pool;
  for (int i = 0; i < 100; ++i) pool.see(0.1, 3);
  EXPECT_NEAR(pool.factor(1), 3, 0.5);
  for (int i = 0; i < 60; ++i) pool.see(0.1, 1);
  EXPECT_NEAR(pool.factor(1), 1, 0.06);
}

TEST(EndpointFactors, GoesBackWithoutNews) {
  Pool pool;
  for (int i = 0; i < 100; ++i) pool.see(0.05, 2);
  const double before = std::log(pool.factor(1));
  EXPECT_NEAR(std::log(pool.factor(1, std::chrono::minutes(5))), before / 2, 0.01);
  EXPECT_NEAR(pool.factor(1, std::chrono::hours(2)), 1, 0.01);
}

TEST(EndpointFactors, TheOnlyOneIsAverage) {
  EndpointFactors factors{{}};
  for (int i = 0; i < 20; ++i) factors.observe(EndpointId(1), 2.0, Instant{});
  EXPECT_EQ(factors.factor(EndpointId(1), Instant{}), 1);
  EXPECT_EQ(factors.factor(EndpointId(2), Instant{}), 1);
}

}  // namespace
}  // namespace signalbox::perf
