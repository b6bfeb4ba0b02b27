// SPDX-License-Identifier: Apache-2.0
// Goal: curves say the rate of every time, and how long an amount takes. Method: by hand.
#include "sim/trace/rate_curve.h"

#include <gtest/gtest.h>

namespace signalbox::trace {
namespace {

using namespace std::chrono_literals;

TEST(RateCurve, WithoutPointsIsOneForEver) {
  const Stretch line = stretch_at({}, 5s);
  EXPECT_EQ(line.rate, 1);
  EXPECT_EQ(line.rate_end, 1);
  EXPECT_EQ(line.until, kEver);
  EXPECT_EQ(mean_of({}), 1);
}

TEST(RateCurve, ARampRisesAndStays) {
  const RateCurve ramp{{{10s, 1}, {20s, 3}}, RateCurve::Between::Linear, {}};
  EXPECT_EQ(stretch_at(ramp, 0s).until, 10s);
  EXPECT_EQ(stretch_at(ramp, 0s).rate, 1);
  EXPECT_EQ(stretch_at(ramp, 15s).rate, 2);
  EXPECT_EQ(stretch_at(ramp, 15s).rate_end, 3);
  EXPECT_EQ(stretch_at(ramp, 20s).rate, 3);
  EXPECT_EQ(stretch_at(ramp, 20s).until, kEver);
  EXPECT_DOUBLE_EQ(mean_of(ramp), 1.5);
}

TEST(RateCurve, StepsRepeat) {
  const RateCurve day{{{0s, 1}, {6s, 5}}, RateCurve::Between::Step, 8s};
  EXPECT_EQ(stretch_at(day, 5s).rate, 1);
  EXPECT_EQ(stretch_at(day, 5s).until, 6s);
  EXPECT_EQ(stretch_at(day, 7s).until, 8s);
  EXPECT_EQ(stretch_at(day, 15s).rate, 5);
  EXPECT_EQ(stretch_at(day, 15s).until, 16s);
  EXPECT_DOUBLE_EQ(mean_of(day), 2);
}

TEST(RateCurve, AnAmountOfALineTakesItsTime) {
  EXPECT_DOUBLE_EQ(seconds_until(2, 2, 10, 6), 3);
  // From 0 to 10 in 10 s: after t seconds t²/2.
  EXPECT_DOUBLE_EQ(seconds_until(0, 10, 10, 8), 4);
  // From 10 to 0: 10·t - t²/2.
  EXPECT_DOUBLE_EQ(seconds_until(10, 0, 10, 32), 4);
}

}  // namespace
}  // namespace signalbox::trace
