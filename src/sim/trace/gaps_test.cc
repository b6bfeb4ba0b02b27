// SPDX-License-Identifier: Apache-2.0
// Goal: gaps have mean 1 and the deviation of their shape; a stationary start counts right;
// quantiles give back what they were made of. Method: many draws of a fixed seed.
#include "sim/trace/gaps.h"

#include <gtest/gtest.h>

#include <cmath>

#include "sim/trace/quantiles.h"

namespace signalbox::trace {
namespace {

constexpr int kDraws = 200'000;

struct Moments {
  double mean = 0, cv = 0;
};

Moments moments(const GapShape& gaps) {
  Rng rng(1, "gaps");
  double sum = 0, squares = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double gap = draw_gap(gaps, rng);
    EXPECT_GE(gap, 0);
    sum += gap;
    squares += gap * gap;
  }
  const double mean = sum / kDraws;
  return {mean, std::sqrt(squares / kDraws - mean * mean) / mean};
}

TEST(Gaps, HaveMeanOneAndTheirCoefficientOfVariation) {
  for (const double cv : {0.0, 0.3, 1.0, 2.0, 4.0}) {
    const Moments m = moments(gaps_of_cv(cv));
    EXPECT_NEAR(m.mean, 1, 0.01 + 5 * cv / std::sqrt(kDraws)) << cv;
    EXPECT_NEAR(m.cv, cv, 0.01 + 0.05 * cv) << cv;
  }
  // Weibull of shape k: cv² = Γ(1 + 2/k)/Γ(1 + 1/k)² - 1; for k = 0.5 that is 5.
  const Moments m = moments({GapShape::Pattern::Weibull, 0.5});
  EXPECT_NEAR(m.mean, 1, 0.03);
  EXPECT_NEAR(m.cv, std::sqrt(5.0), 0.15);
}

TEST(Gaps, AStationaryStartExpectsAsManyArrivalsAsTimeGoesBy) {
  using Pattern = GapShape::Pattern;
  for (const GapShape& gaps : {gaps_of_cv(3), gaps_of_cv(0.2), GapShape{Pattern::Weibull, 0.4},
                               GapShape{Pattern::Weibull, 3}}) {
    Rng rng(2, "rest");
    double count = 0;
    constexpr int kRuns = 20'000;
    constexpr double kTime = 3;
    for (int i = 0; i < kRuns; ++i) {
      for (double at = draw_rest(gaps, rng); at < kTime; at += draw_gap(gaps, rng)) ++count;
    }
    // Bursty counts deviate widely: of cv 3, by about 6 in each run.
    EXPECT_NEAR(count / kRuns, kTime, 0.15) << gaps.shape;
  }
}

TEST(Gaps, ExtremeShapesStayNumbers) {
  Rng rng(3, "extreme");
  for (const double shape : {1e-9, kShapeMin, 0.006727, 45'230.0, 1e12}) {
    for (const auto pattern : {GapShape::Pattern::Gamma, GapShape::Pattern::Weibull}) {
      for (int i = 0; i < 100; ++i) {
        const double gap = draw_gap({pattern, shape}, rng);
        EXPECT_TRUE(std::isfinite(gap) && gap >= 0) << shape;
        EXPECT_GE(draw_rest({pattern, shape}, rng), 0) << shape;
      }
    }
  }
}

TEST(Quantiles, GiveBackWhatTheyWereMadeOf) {
  const Quantiles q({{0.1, 10}, {0.5, 20}, {0.9, 100}});
  EXPECT_EQ(q.at(0), 10);
  EXPECT_EQ(q.at(0.5), 20);
  EXPECT_EQ(q.at(0.3), 15);
  EXPECT_EQ(q.at(1), 100);
  EXPECT_DOUBLE_EQ(q.mean(), 0.1 * 10 + 0.4 * 15 + 0.4 * 60 + 0.1 * 100);
}

TEST(Quantiles, ALongTailIsBentToTheRecordedMean) {
  // Input lengths of ServeGen's m-small: straight lines alone would have a mean of 196.
  const std::vector<Quantile> points = {{0.01, 18},  {0.05, 19},  {0.1, 19},    {0.25, 20},
                                        {0.5, 40},   {0.75, 53},  {0.9, 322},   {0.95, 573},
                                        {0.99, 1478}, {0.999, 2998}, {1, 145'912}};
  EXPECT_GT(Quantiles(points).mean(), 190);
  const Quantiles bent(points, 119.67);
  EXPECT_NEAR(bent.mean(), 119.67, 0.01);
  EXPECT_EQ(bent.at(0.95), 573);
  EXPECT_EQ(bent.at(1), 145'912);
  double sum = 0;
  Rng rng(4, "quantiles");
  for (int i = 0; i < kDraws; ++i) sum += bent.at(rng.uniform());
  EXPECT_NEAR(sum / kDraws, 119.67, 15);
}

}  // namespace
}  // namespace signalbox::trace
