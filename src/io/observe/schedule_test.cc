// SPDX-License-Identifier: Apache-2.0
// Goal: intervals are kept, spread and never below an engine's floor; retries come soon enough to
// see a recovery within a second. Method: bounds over many draws.
#include "io/observe/schedule.h"

#include <gtest/gtest.h>

namespace signalbox::observe {
namespace {

using namespace std::chrono_literals;

TEST(Schedule, SpreadsTheFirstIntervalAndJittersTheOthers) {
  Config config;
  Rng rng(1, "schedule");
  Instant began{5s};
  Duration least = 10s;
  Duration most = 0s;
  for (int i = 0; i < 1000; ++i) {
    Schedule schedule(config);
    Duration first = schedule.after_success(began, rng) - began;
    least = std::min(least, first);
    most = std::max(most, first);
    Duration second = schedule.after_success(began, rng) - began;
    ASSERT_GE(second, 1s);
    ASSERT_LE(second, 1100ms);
  }
  EXPECT_GE(least, 1s);
  EXPECT_LT(least, 1100ms);
  EXPECT_GT(most, 1900ms);
  EXPECT_LE(most, 2100ms);
}

TEST(Schedule, KeepsTheTargetsOwnIntervalWhereItHasOne) {
  Config config;
  Rng rng(4, "schedule");
  Schedule schedule(config);
  (void)schedule.after_success(Instant{}, rng);
  schedule.set_interval(100ms);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_GE(schedule.after_success(Instant{}, rng), Instant{100ms});
    ASSERT_LE(schedule.after_success(Instant{}, rng), Instant{110ms});
  }
  schedule.set_interval(0s);
  EXPECT_GE(schedule.after_success(Instant{}, rng), Instant{1s});
}

TEST(Schedule, NeverUndercutsTheFloorOfAnEngine) {
  Config config;
  Rng rng(2, "schedule");
  Schedule schedule(config);
  schedule.set_floor(2s);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_GE(schedule.after_success(Instant{}, rng), Instant{2s});
  }
  EXPECT_EQ(schedule.not_before(Instant{1s}, Instant{500ms}), Instant{2500ms});
  EXPECT_EQ(schedule.not_before(Instant{9s}, Instant{500ms}), Instant{9s});
}

TEST(Schedule, BacksOffButStaysWithinASecond) {
  Config config;
  Rng rng(3, "schedule");
  Schedule schedule(config);
  Instant now{};
  Duration wait = schedule.after_failure(now, rng) - now;
  EXPECT_GE(wait, 50ms);
  EXPECT_LE(wait, 100ms);
  for (int i = 0; i < 1000; ++i) {
    wait = schedule.after_failure(now, rng) - now;
    ASSERT_LE(wait, 800ms);
  }
  EXPECT_GE(wait, 400ms);
  EXPECT_EQ(schedule.failures(), 1001);
  (void)schedule.after_success(now, rng);
  EXPECT_EQ(schedule.failures(), 0);
}

}  // namespace
}  // namespace signalbox::observe
