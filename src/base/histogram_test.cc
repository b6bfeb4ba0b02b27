// SPDX-License-Identifier: Apache-2.0
// Goal: quantiles within 1 % of the exact ones, and merging equals recording together.
// Method: laws against sorted vectors of values from many magnitudes.
#include "base/histogram.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace signalbox {
namespace {

rc::Gen<std::vector<double>> values_in(double low, double high) {
  const double a = std::log(low);
  const double b = std::log(high);
  const auto one = rc::gen::map(rc::gen::inRange(0, 1'000'000), [=](int x) {
    return std::exp(a + (b - a) * x * 1e-6);
  });
  return rc::gen::nonEmpty(rc::gen::container<std::vector<double>>(one));
}

double exact_quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  const double rank = std::max(1.0, std::ceil(q * static_cast<double>(values.size())));
  return values[static_cast<std::size_t>(rank) - 1];
}

RC_GTEST_PROP(HistogramLaw, QuantilesAreWithinOnePercent, ()) {
  const auto values = *values_in(1e-6, 86'000);
  const double q = *rc::gen::inRange(0, 1001) / 1000.0;
  Histogram h;
  for (double v : values) h.record(v);
  const double exact = exact_quantile(values, q);
  RC_ASSERT(std::abs(h.quantile(q) - exact) <= exact * Histogram::kRelativeError);
}

RC_GTEST_PROP(HistogramLaw, MergingEqualsRecordingTogether, ()) {
  const auto a = *values_in(1e-6, 86'000);
  const auto b = *values_in(1e-6, 86'000);
  Histogram left, right, both;
  for (double v : a) left.record(v), both.record(v);
  for (double v : b) right.record(v), both.record(v);
  left.merge(right);
  RC_ASSERT(left.count() == both.count());
  RC_ASSERT(left.min() == both.min());
  RC_ASSERT(left.max() == both.max());
  RC_ASSERT(std::abs(left.sum() - both.sum()) <= 1e-9 * both.sum());
  for (double q : {0.0, 0.1, 0.5, 0.9, 0.99, 1.0}) RC_ASSERT(left.quantile(q) == both.quantile(q));
}

RC_GTEST_PROP(HistogramLaw, CountsUpToABoundAreMonotoneAndComplete, ()) {
  const auto values = *values_in(1e-6, 86'000);
  Histogram h;
  for (double v : values) h.record(v);
  std::uint64_t before = 0;
  for (double bound = 1e-7; bound < 1e6; bound *= 3) {
    const auto exact = static_cast<std::uint64_t>(
        std::count_if(values.begin(), values.end(), [&](double v) { return v <= bound; }));
    const auto slack = static_cast<std::uint64_t>(
        std::count_if(values.begin(), values.end(), [&](double v) { return v <= bound * 1.016; }));
    RC_ASSERT(h.count_at_most(bound) >= before);
    RC_ASSERT(h.count_at_most(bound) >= exact);
    RC_ASSERT(h.count_at_most(bound) <= slack);
    before = h.count_at_most(bound);
  }
  RC_ASSERT(before == h.count());
}

TEST(Histogram, MergesAnotherRangeAtItsEnds) {
  Histogram narrow(1, 16), wide(1e-3, 1e6);
  wide.record(0.5);
  wide.record(4);
  wide.record(1000);
  narrow.merge(wide);
  EXPECT_EQ(narrow.count(), 3u);
  EXPECT_EQ(narrow.min(), 0.5);
  EXPECT_EQ(narrow.max(), 1000);
  EXPECT_NEAR(narrow.quantile(0.5), 4, 0.04);
}

TEST(Histogram, EmptyAnswersZeroAndOddValuesAreSafe) {
  Histogram h;
  EXPECT_EQ(h.quantile(0.5), 0);
  EXPECT_EQ(h.count_at_most(1), 0u);
  h.record(std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(h.count(), 0u);
  h.record(0);
  h.record(-3);
  h.record(1e300);
  EXPECT_EQ(h.count(), 3u);
  EXPECT_EQ(h.quantile(0), -3);
  EXPECT_EQ(h.quantile(1), 1e300);
  h.clear();
  EXPECT_EQ(h.count(), 0u);
  EXPECT_EQ(h.max(), 0);
}

}  // namespace
}  // namespace signalbox
