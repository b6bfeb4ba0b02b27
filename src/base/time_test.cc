// SPDX-License-Identifier: Apache-2.0
// Goal: seconds and Durations convert both ways without surprises at the ends. Method: values, law.
#include "base/time.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>

namespace signalbox {
namespace {

TEST(Time, SecondsConvert) {
  EXPECT_EQ(from_seconds(1.5), std::chrono::milliseconds(1500));
  EXPECT_EQ(from_seconds(-0.25), -std::chrono::milliseconds(250));
  EXPECT_DOUBLE_EQ(to_seconds(std::chrono::minutes(2)), 120);
}

TEST(Time, ConversionSaturates) {
  EXPECT_EQ(from_seconds(std::numeric_limits<double>::infinity()), Duration::max());
  EXPECT_EQ(from_seconds(-1e300), Duration::min());
  EXPECT_EQ(from_seconds(std::numeric_limits<double>::quiet_NaN()), Duration::zero());
}

RC_GTEST_PROP(TimeLaw, SecondsSurviveTheRoundTrip, ()) {
  const auto ns = *rc::gen::inRange<std::int64_t>(-1'000'000'000'000'000, 1'000'000'000'000'000);
  const Duration back = from_seconds(to_seconds(Duration(ns)));
  RC_ASSERT(std::abs(back.count() - ns) <= 1);
}

}  // namespace
}  // namespace signalbox
