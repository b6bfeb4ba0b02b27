// SPDX-License-Identifier: Apache-2.0
// Goal: a figure that a client can use, whatever the inputs. Method: edge cases.
#include "core/admission/retry_after.h"

#include <gtest/gtest.h>

#include <cmath>

namespace signalbox::admission {
namespace {

using std::chrono::seconds;

TEST(RetryAfter, RoundsUpToWholeSeconds) {
  EXPECT_EQ(retry_after(10, 4), seconds(3));
  EXPECT_EQ(retry_after(8, 4), seconds(2));
}

TEST(RetryAfter, StaysBetweenOneSecondAndTwoMinutes) {
  EXPECT_EQ(retry_after(0, 4), seconds(1));
  EXPECT_EQ(retry_after(-5, 4), seconds(1));
  EXPECT_EQ(retry_after(1e9, 4), seconds(120));
  EXPECT_EQ(retry_after(5, 0), seconds(120));
  EXPECT_EQ(retry_after(0, 0), seconds(120));
  EXPECT_EQ(retry_after(5, -1), seconds(120));
  EXPECT_EQ(retry_after(std::nan(""), 1), seconds(120));
  EXPECT_EQ(retry_after(INFINITY, INFINITY), seconds(120));
}

}  // namespace
}  // namespace signalbox::admission
