// SPDX-License-Identifier: Apache-2.0
// Goal: nothing is lost when buckets merge, and memory is bounded. Method: the same happenings told
// to a series and kept in plain lists.
#include "sim/series.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/rng.h"

namespace signalbox::sim {
namespace {

using namespace std::chrono_literals;

Instant at(Duration time) { return Instant{} + time; }

TEST(Series, AShortRunKeepsItsFirstWidth) {
  Series series;
  series.arrived(at(0ms));
  series.arrived(at(99ms));
  series.arrived(at(100ms));
  EXPECT_EQ(series.width(), Series::kWidthFirst);
  ASSERT_EQ(series.buckets().size(), 2u);
  EXPECT_EQ(series.buckets()[0].arrived, 2);
  EXPECT_EQ(series.buckets()[1].arrived, 1);
}

TEST(Series, ALongRunHasWiderBucketsAndTheSameSums) {
  Rng rng(7, "series");
  Series series;
  std::int64_t arrived = 0;
  std::int64_t good = 0;
  double ttft = 0;
  double worst = 0;
  Duration time{};
  while (time < 10'000s) {
    time += from_seconds(rng.exponential(0.5));
    ++arrived;
    series.arrived(at(time));
    const double took = rng.uniform();
    const bool met = rng.chance(0.5);
    series.answered(at(time), took, met);
    ttft += took;
    good += met ? 1 : 0;
    worst = std::max(worst, took);
    series.look(at(time), {.queued = 3, .instances = 2});
    ASSERT_LE(series.buckets().size(), Series::kBucketsMax);
  }
  const Bucket all = series.between(0s, Duration::max());
  EXPECT_EQ(all.arrived, arrived);
  EXPECT_EQ(all.answered, arrived);
  EXPECT_EQ(all.good, good);
  EXPECT_NEAR(all.ttft_sum, ttft, 1e-6 * ttft);
  EXPECT_EQ(all.ttft_max, worst);
  EXPECT_EQ(all.moments, arrived);
  EXPECT_DOUBLE_EQ(all.mean(&Moment::queued), 3);
  EXPECT_DOUBLE_EQ(all.mean(&Moment::instances), 2);
  EXPECT_EQ(all.queued_max, 3);
  // 10,000 s in at most 600 buckets of 0.1 s · 2^n.
  EXPECT_EQ(series.width(), 100ms * 256);
  EXPECT_GT(series.buckets().size(), Series::kBucketsMax / 2);
}

TEST(Series, AStretchHoldsTheBucketsThatBeginInIt) {
  Series series;
  for (int i = 0; i < 50; ++i) series.answered(at(100ms * i), 1, true);
  EXPECT_EQ(series.between(1s, 2s).answered, 10);
  EXPECT_DOUBLE_EQ(series.seconds_between(1s, 2s), 1);
  EXPECT_EQ(series.between(4500ms, Duration::max()).answered, 5);
  EXPECT_EQ(series.between(9s, Duration::max()).answered, 0);
  EXPECT_DOUBLE_EQ(series.seconds_between(9s, Duration::max()), 0);
}

// A run that jumps far ahead merges as often as it has to, not bucket by bucket.
TEST(Series, ALeapIsNoLoopOverEmptyTime) {
  Series series;
  series.arrived(at(0s));
  series.arrived(at(std::chrono::hours(24 * 365 * 100)));
  EXPECT_LE(series.buckets().size(), Series::kBucketsMax);
  EXPECT_EQ(series.between(0s, Duration::max()).arrived, 2);
}

}  // namespace
}  // namespace signalbox::sim
