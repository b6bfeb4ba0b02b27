// SPDX-License-Identifier: Apache-2.0
// Goal: arrivals have the rate, the irregularity and the shape over time that were asked for.
// Method: many arrivals of a fixed seed, counted.
#include "sim/arrivals.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace signalbox::sim {
namespace {

using namespace std::chrono_literals;

std::vector<double> until(const Arrivals& arrivals, double rate, double end,
                          std::uint64_t seed = 1) {
  ArrivalProcess process(arrivals, rate, seed);
  std::vector<double> times;
  while (true) {
    const Duration at = process.next();
    if (at == trace::kEver || to_seconds(at) >= end) return times;
    EXPECT_TRUE(times.empty() || to_seconds(at) >= times.back());
    times.push_back(to_seconds(at));
  }
}

double within(const std::vector<double>& times, double from, double to) {
  double count = 0;
  for (const double at : times) count += at >= from && at < to;
  return count;
}

std::vector<double> per_second(const std::vector<double>& times, double end) {
  std::vector<double> counts(static_cast<std::size_t>(end));
  for (const double at : times) ++counts[static_cast<std::size_t>(at)];
  return counts;
}

// Variance over mean of the counts in windows of a second: 1 for Poisson.
double dispersion(const std::vector<double>& times, double end) {
  const std::vector<double> counts = per_second(times, end);
  double sum = 0, squares = 0;
  for (const double n : counts) sum += n, squares += n * n;
  const double mean = sum / end;
  return (squares / end - mean * mean) / mean;
}

TEST(Arrivals, ComeAtTheirRateWhateverTheirShape) {
  for (const double cv : {0.0, 0.5, 1.0, 3.0}) {
    Arrivals arrivals;
    arrivals.cv = cv;
    const auto times = until(arrivals, 20, 5000);
    EXPECT_NEAR(static_cast<double>(times.size()), 100'000, 100 + 5 * cv * std::sqrt(100'000));
    EXPECT_NEAR(dispersion(times, 5000), cv * cv, 0.06 + 0.25 * cv * cv) << cv;
  }
}

TEST(Arrivals, BurstsKeepTheMeanAndRaiseThePeaks) {
  Arrivals arrivals;
  arrivals.bursts = {10s, 30s, 0.1};
  const auto times = until(arrivals, 20, 40'000);
  EXPECT_NEAR(static_cast<double>(times.size()), 800'000, 60'000);
  EXPECT_GT(dispersion(times, 40'000), 10);
  // Within bursts (10 + 30)/(10 + 0.1·30) = 3.08 times the rate.
  const std::vector<double> counts = per_second(times, 40'000);
  EXPECT_NEAR(*std::max_element(counts.begin(), counts.end()), 62 + 4 * std::sqrt(62), 20);
}

TEST(Arrivals, NobodyComesBetweenBurstsThatAreQuiet) {
  Arrivals arrivals;
  arrivals.bursts = {1s, 100s, 0};
  const auto times = until(arrivals, 1, 10'000);
  EXPECT_GT(times.size(), 3000u);
  double longest = 0;
  for (std::size_t i = 1; i < times.size(); ++i) {
    longest = std::max(longest, times[i] - times[i - 1]);
  }
  EXPECT_GT(longest, 100);
}

TEST(Arrivals, ARampRises) {
  Arrivals arrivals;
  arrivals.curve.points = {{0s, 0}, {1000s, 2}};
  const auto times = until(arrivals, 50, 2000);
  EXPECT_NEAR(within(times, 0, 500), 50 * 250, 600);
  EXPECT_NEAR(within(times, 500, 1000), 50 * 750, 1000);
  EXPECT_NEAR(within(times, 1000, 2000), 100'000, 1600);
}

TEST(Arrivals, ATideRepeats) {
  Arrivals arrivals;
  arrivals.curve.points = {{0s, 1}, {100s, 0}};
  arrivals.curve.between = trace::RateCurve::Between::Step;
  arrivals.curve.period = 200s;
  const auto times = until(arrivals, 50, 2000);
  EXPECT_NEAR(within(times, 1800, 1900), 5000, 350);
  EXPECT_EQ(within(times, 1900, 2000), 0);
}

TEST(Arrivals, EndWhenTheCurveEndsAtNothing) {
  Arrivals arrivals;
  arrivals.curve.points = {{0s, 1}, {10s, 0}};
  ArrivalProcess process(arrivals, 10, 1);
  int count = 0;
  while (process.next() != trace::kEver) ++count;
  EXPECT_NEAR(count, 50, 35);
  EXPECT_EQ(process.next(), trace::kEver);
  arrivals.curve.points = {{0s, 0}, {10s, 0}};
  arrivals.curve.period = 20s;
  EXPECT_EQ(ArrivalProcess(arrivals, 10, 1).next(), trace::kEver);
}

TEST(Arrivals, TheSameSeedComesAtTheSameTimes) {
  Arrivals arrivals;
  arrivals.cv = 2;
  arrivals.bursts = {10s, 30s, 0.1};
  EXPECT_EQ(until(arrivals, 5, 100), until(arrivals, 5, 100));
  EXPECT_NE(until(arrivals, 5, 100), until(arrivals, 5, 100, 2));
}

}  // namespace
}  // namespace signalbox::sim
