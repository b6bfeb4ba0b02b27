// SPDX-License-Identifier: Apache-2.0
// Goal: the same seed gives the same run on every machine, streams are apart, distributions right.
// Method: golden draws, and moments over many draws with wide margins.
#include "base/rng.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <cmath>
#include <vector>

namespace signalbox {
namespace {

TEST(Rng, DrawsAreTheSameEverywhere) {
  Rng rng(42, "arrivals");
  const std::array<std::uint64_t, 4> golden = {
      9096218232580747717u, 13225930715748406209u,
      196090262218896800u, 3646909072354404310u};
  for (std::uint64_t expected : golden) EXPECT_EQ(rng.next(), expected);
}

TEST(Rng, StreamsAndSeedsAreApart) {
  const auto first = [](std::uint64_t seed, const char* stream) {
    return Rng(seed, stream).next();
  };
  EXPECT_NE(first(1, "a"), first(1, "b"));
  EXPECT_NE(first(1, "a"), first(2, "a"));
  EXPECT_NE(first(1, "ab"), first(1, "ba"));
  EXPECT_EQ(first(1, "a"), first(1, "a"));
}

TEST(Rng, BelowIsUniform) {
  Rng rng(7, "below");
  std::vector<int> counts(10, 0);
  for (int i = 0; i < 100'000; ++i) ++counts[rng.below(10)];
  for (int c : counts) EXPECT_NEAR(c, 10'000, 500);
}

RC_GTEST_PROP(RngLaw, BelowStaysBelow, (std::uint64_t seed)) {
  const auto bound = *rc::gen::suchThat(rc::gen::arbitrary<std::uint64_t>(),
                                        [](std::uint64_t b) { return b > 0; });
  Rng rng(seed, "law");
  for (int i = 0; i < 20; ++i) RC_ASSERT(rng.below(bound) < bound);
}

TEST(Rng, MomentsAreRight) {
  Rng rng(3, "moments");
  const int n = 200'000;
  double uniform = 0, exponential = 0, normal = 0, square = 0;
  int heads = 0;
  for (int i = 0; i < n; ++i) {
    const double u = rng.uniform();
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
    uniform += u;
    exponential += rng.exponential(5);
    const double x = rng.normal();
    normal += x;
    square += x * x;
    heads += rng.chance(0.3) ? 1 : 0;
  }
  EXPECT_NEAR(uniform / n, 0.5, 0.005);
  EXPECT_NEAR(exponential / n, 5, 0.08);
  EXPECT_NEAR(normal / n, 0, 0.015);
  EXPECT_NEAR(square / n, 1, 0.02);
  EXPECT_NEAR(heads, 0.3 * n, 0.005 * n);
  EXPECT_GE(rng.uniform(4, 6), 4);
  EXPECT_FALSE(rng.chance(0));
  EXPECT_TRUE(rng.chance(1));
}

}  // namespace
}  // namespace signalbox
