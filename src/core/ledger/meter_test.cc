// SPDX-License-Identifier: Apache-2.0
// Goal: shares are fair, and with what is open and idle they are exact. Method: small cases by
// hand, and random histories against a split in floating point.
#include "core/ledger/meter.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <vector>

#include "base/rng.h"

namespace signalbox::ledger {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

const Instant kStart{hours(5)};

TEST(Meter, BooksAnUnusedEndpointAsIdle) {
  Meter meter(kStart, 2.5);
  EXPECT_EQ(meter.advance(kStart + hours(2)), (Cost{hours(2), 5'000'000'000}));
  EXPECT_EQ(meter.idle(), (Cost{hours(2), 5'000'000'000}));
}

TEST(Meter, GivesALoneRequestAll) {
  Meter meter(kStart, 3.6);
  const Running r = meter.start(0.1);
  meter.advance(kStart + seconds(10));
  EXPECT_EQ(meter.open(), (Cost{seconds(10), 10'000'000}));
  EXPECT_EQ(meter.end(r), (Cost{seconds(10), 10'000'000}));
  EXPECT_EQ(meter.open(), Cost{});
}

TEST(Meter, SplitsByWeight) {
  Meter meter(kStart, 3.6);
  const Running small = meter.start(1);
  const Running large = meter.start(3);
  meter.advance(kStart + seconds(8));
  EXPECT_EQ(meter.end(small).engine_time, seconds(2));
  meter.advance(kStart + seconds(9));
  EXPECT_EQ(meter.end(large).engine_time, seconds(7));
}

TEST(Meter, TakesStrangeWeightsAndPrices) {
  Meter meter(kStart, std::nan(""));
  const Running a = meter.start(std::nan(""));
  const Running b = meter.start(-5);
  const Running c = meter.start(1e300);
  meter.advance(kStart + hours(1));
  const Cost sum = meter.end(a) + meter.end(b) + meter.end(c);
  EXPECT_EQ(sum, (Cost{hours(1), 0}));
}

TEST(Meter, DoesNotRunBackwards) {
  Meter meter(kStart, 1);
  meter.advance(kStart + seconds(1));
  EXPECT_EQ(meter.advance(kStart), Cost{});
  EXPECT_EQ(meter.advance(kStart + seconds(2)).engine_time, seconds(1));
}

RC_GTEST_PROP(MeterLaw, SharesOpenAndIdleAreElapsedTimesPriceExactly, (std::uint64_t seed)) {
  Rng rng(seed, "meter");
  double usd = rng.uniform(0, 10);
  Meter meter(kStart, usd);
  Instant now = kStart;
  Wide integral = 0;  // nanodollars · ns per hour
  Cost taken;
  struct Open {
    Running running;
    double time = 0;
  };
  std::vector<Open> open;
  for (int i = 0; i < 300; ++i) {
    const auto step = static_cast<std::int64_t>(rng.exponential(rng.chance(0.1) ? 1e12 : 1e6));
    now += Duration(step);
    integral += static_cast<Wide>(std::llround(usd * 1e9)) * static_cast<Wide>(step);
    double weights = 0;
    for (const Open& o : open) weights += static_cast<double>(o.running.weight);
    for (Open& o : open) {
      o.time += static_cast<double>(step) * static_cast<double>(o.running.weight) / weights;
    }
    meter.advance(now);
    if (rng.chance(0.1)) meter.set_price(usd = rng.uniform(0, 10));
    if (open.empty() || rng.chance(0.5)) {
      open.push_back({meter.start(rng.exponential(rng.chance(0.2) ? 1000 : 0.01)), 0});
    } else {
      const std::size_t k = rng.below(open.size());
      const Cost share = meter.end(open[k].running);
      const double error = static_cast<double>(share.engine_time.count()) - open[k].time;
      RC_ASSERT(std::abs(error) <= 3 + 1e-9 * open[k].time);
      taken += share;
      open.erase(open.begin() + static_cast<std::ptrdiff_t>(k));
    }
    const Cost sum = taken + meter.open() + meter.idle();
    RC_ASSERT(sum.engine_time == now - kStart);
    RC_ASSERT(sum.nanodollars == static_cast<std::int64_t>(integral / 3'600'000'000'000));
    RC_ASSERT(meter.running() == static_cast<int>(open.size()));
  }
}

}  // namespace
}  // namespace signalbox::ledger
