// SPDX-License-Identifier: Apache-2.0
// Goal: the wheel fires every armed timer once, never early, in any order of arming, disarming and
// advancing. Method: against a sorted list of deadlines, with virtual time.
#include "io/net/timer.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <vector>

#include "base/rng.h"

namespace signalbox::net {
namespace {

using std::chrono::milliseconds;

TEST(TimerWheel, FiresOnceAfterItsDeadline) {
  TimerWheel wheel(Instant{});
  int fired = 0;
  Timer timer([&] { ++fired; });
  wheel.arm(timer, Instant(milliseconds(5)));
  wheel.advance(Instant(milliseconds(5)));
  EXPECT_EQ(fired, 0) << "a timer may be late by a tick, never early";
  wheel.advance(Instant(milliseconds(6)));
  wheel.advance(Instant(milliseconds(60)));
  EXPECT_EQ(fired, 1);
  EXPECT_FALSE(timer.armed());
}

TEST(TimerWheel, FiresDeadlinesBeyondOneTurnOfTheWheel) {
  TimerWheel wheel(Instant{});
  int fired = 0;
  Timer timer([&] { ++fired; });
  wheel.arm(timer, Instant(std::chrono::seconds(10)));
  for (int ms = 0; ms <= 10'000; ms += 7) wheel.advance(Instant(milliseconds(ms)));
  EXPECT_EQ(fired, 0);
  wheel.advance(Instant(milliseconds(10'001)));
  EXPECT_EQ(fired, 1);
}

TEST(TimerWheel, ACallbackMayRearmItselfAndDestroyAnother) {
  TimerWheel wheel(Instant{});
  int fired = 0;
  auto other = std::make_unique<Timer>([&] { FAIL() << "destroyed timers do not fire"; });
  std::unique_ptr<Timer> self;
  self = std::make_unique<Timer>([&] {
    other.reset();
    if (++fired < 3) wheel.arm(*self, self->deadline() + milliseconds(10));
  });
  wheel.arm(*other, Instant(milliseconds(10)));
  wheel.arm(*self, Instant(milliseconds(10)));
  for (int ms = 0; ms < 100; ++ms) wheel.advance(Instant(milliseconds(ms)));
  EXPECT_EQ(fired, 3);
}

TEST(TimerWheel, WakesForADeadlineAndHardlyBefore) {
  TimerWheel wheel(Instant{});
  std::deque<Timer> timers;
  int fired = 0;
  for (int i = 0; i < 500; ++i) {
    timers.emplace_back([&] { ++fired; });
    wheel.arm(timers.back(), Instant(milliseconds(30'000 + i)));
  }
  int woken = 0;
  for (; wheel.next() < Instant(milliseconds(30'000)); ++woken) wheel.advance(wheel.next());
  EXPECT_LE(woken, 2) << "the far slots of the second in which they end";
  for (; wheel.next() != kNever; ++woken) wheel.advance(wheel.next());
  EXPECT_EQ(fired, 500);
  EXPECT_LE(woken, 502);
}

TEST(TimerWheel, FiresDeadlinesBeyondTheFarSlots) {
  TimerWheel wheel(Instant{});
  Instant fired{};
  Instant now{};
  Timer timer([&] { fired = now; });
  wheel.arm(timer, Instant(std::chrono::minutes(10)));
  int woken = 0;
  for (; timer.armed(); ++woken) wheel.advance(now = wheel.next());
  EXPECT_EQ(fired, Instant(std::chrono::minutes(10)) + milliseconds(1));
  EXPECT_LE(woken, 12);
}

TEST(TimerWheel, AgreesWithASortedListOverRandomHistories) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Rng rng(seed, "timer");
    TimerWheel wheel(Instant{});
    std::vector<Instant> expected(40, kNever);
    std::vector<bool> due(40, false);
    std::deque<Timer> timers;
    Instant now{};
    for (std::size_t i = 0; i < 40; ++i) {
      timers.emplace_back([&, i] {
        EXPECT_GE(now, expected[i]) << "seed " << seed << ": early";
        EXPECT_NE(expected[i], kNever) << "seed " << seed << ": fired while disarmed";
        expected[i] = kNever;
      });
    }
    for (int step = 0; step < 400; ++step) {
      const std::size_t i = rng.below(40);
      if (rng.chance(0.2)) {
        timers[i].disarm();
        expected[i] = kNever;
      } else {
        expected[i] = now + milliseconds(rng.below(rng.chance(0.2) ? 200'000 : 3'000));
        wheel.arm(timers[i], expected[i]);
      }
      EXPECT_GT(wheel.next(), now - milliseconds(1));
      now += milliseconds(rng.below(rng.chance(0.1) ? 90'000 : 20));
      wheel.advance(now);
      for (std::size_t k = 0; k < 40; ++k) {
        EXPECT_TRUE(expected[k] == kNever || expected[k] + milliseconds(1) > now)
            << "seed " << seed << ": timer " << k << " is late";
      }
    }
  }
}

}  // namespace
}  // namespace signalbox::net
