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
  void see(double scatter, double slow_factor) {
    now_ += std::chrono::seconds(1);
    for (std::uint32_t i = 1; i <= kEndpoints; ++i) {
      const double truth = i == 1 ? slow_factor : 1;
      factors_.observe(EndpointId(i), 1.3 * truth * std::exp(scatter * rng_.normal()), now_);
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

TEST(EndpointFactors, FindsTheSlowOne) {
  Pool pool;
  for (int i = 0; i < 12; ++i) pool.see(0.1, 1.5);
  EXPECT_GT(pool.factor(1), 1.2);
  for (int i = 0; i < 30; ++i) pool.see(0.1, 1.5);
  EXPECT_NEAR(pool.factor(1), 1.5, 0.1);
  for (std::uint32_t e = 2; e <= kEndpoints; ++e) EXPECT_NEAR(pool.factor(e), 1, 0.06);
}

TEST(EndpointFactors, FollowsAnEndpointThatRecovers) {
  Pool pool;
  for (int i = 0; i < 40; ++i) pool.see(0.1, 3);
  EXPECT_NEAR(pool.factor(1), 3, 0.5);
  for (int i = 0; i < 40; ++i) pool.see(0.1, 1);
  EXPECT_NEAR(pool.factor(1), 1, 0.06);
}

TEST(EndpointFactors, GoesBackWithoutNews) {
  Pool pool;
  for (int i = 0; i < 40; ++i) pool.see(0.05, 2);
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
