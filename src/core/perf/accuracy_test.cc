// SPDX-License-Identifier: Apache-2.0
// Goal: errors are what was recorded, recent ones count more, memory is bounded.
// Method: pairs with known errors.
#include "core/perf/accuracy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace signalbox::perf {
namespace {

Accuracy::Pair pair(double predicted, double actual, Quantity quantity = Quantity::Ttft) {
  Accuracy::Pair p;
  p.predicted = predicted;
  p.actual = actual;
  p.sigma = 0.1;
  p.quantity = quantity;
  return p;
}

TEST(Accuracy, SummarisesEachQuantityApart) {
  Accuracy a;
  for (int i = 1; i <= 100; ++i) a.record(pair(1, std::exp(0.01 * i)));
  a.record(pair(2, 1, Quantity::E2e));
  const auto ttft = a.summary(Quantity::Ttft);
  EXPECT_EQ(ttft.count, 100u);
  EXPECT_NEAR(ttft.median_error, 0.5, 0.04);
  EXPECT_NEAR(ttft.p90_error, 0.9, 0.05);
  EXPECT_NEAR(ttft.bias, 0.505, 1e-9);
  EXPECT_NEAR(ttft.coverage, 0.2, 1e-9);
  const auto e2e = a.summary(Quantity::E2e);
  EXPECT_EQ(e2e.count, 1u);
  EXPECT_NEAR(e2e.bias, -std::log(2), 1e-12);
}

TEST(Accuracy, RecentErrorsCountMore) {
  Accuracy a(16, 50);
  for (int i = 0; i < 1000; ++i) a.record(pair(1, 3));
  for (int i = 0; i < 500; ++i) a.record(pair(1, 1.05));
  EXPECT_LT(a.summary(Quantity::Ttft).p90_error, 0.06);
}

TEST(Accuracy, KeepsTheLatestPairs) {
  Accuracy a(3);
  for (int i = 1; i <= 5; ++i) a.record(pair(i, i));
  ASSERT_EQ(a.recent().size(), 3u);
  EXPECT_EQ(a.recent()[0].predicted, 3);
  EXPECT_EQ(a.recent().newest().predicted, 5);
}

TEST(Accuracy, DropsWhatIsNoTime) {
  Accuracy a;
  for (double bad : {0.0, -1.0, std::numeric_limits<double>::infinity(),
                     std::numeric_limits<double>::quiet_NaN()}) {
    a.record(pair(bad, 1));
    a.record(pair(1, bad));
  }
  EXPECT_EQ(a.summary(Quantity::Ttft).count, 0u);
  EXPECT_TRUE(a.recent().empty());
}

}  // namespace
}  // namespace signalbox::perf
