// SPDX-License-Identifier: Apache-2.0
// Goal: what happened to earlier answers with as many others beside them is expected of the next.
// Method: streams of answers whose truth is known; a law.
#include "core/perf/stretch.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "base/rng.h"

namespace signalbox::perf {
namespace {

TEST(Stretch, NothingIsExpectedBeforeAnythingWasSeen) {
  EXPECT_EQ(Stretch().median(0), 1);
  EXPECT_EQ(Stretch().median(1e12), 1);
}

TEST(Stretch, IsThatOfAnswersWithAsManyOthers) {
  Rng rng(1, "stretch");
  Stretch learnt;
  for (int i = 0; i < 400; ++i) {
    const auto others = static_cast<double>(rng.below(4));
    const double foreseen = rng.uniform(0.2, 5);
    learnt.observe(others, foreseen, foreseen * (1 + others) * rng.uniform(0.9, 1.1));
  }
  for (const double others : {0.0, 1.0, 2.0, 3.0}) {
    EXPECT_NEAR(learnt.median(others), 1 + others, 0.12 * (1 + others));
  }
}

// One answer in five meets a prompt that takes many times as long: the four others do not.
TEST(Stretch, AFewLongHoldUpsAreNotExpectedOfAll) {
  Stretch learnt;
  for (int i = 0; i < 100; ++i) learnt.observe(0, 1, i % 5 == 0 ? 30 : 1);
  EXPECT_NEAR(learnt.median(0), 1, 0.05);
}

TEST(Stretch, OneAnswerDoesNotSayMuch) {
  Stretch learnt;
  learnt.observe(3, 1, 4);
  EXPECT_NEAR(learnt.median(3), 2, 0.1);
}

TEST(Stretch, OfAnUnknownClassIsThatOfTheNearestWithFewer) {
  Stretch learnt;
  for (int i = 0; i < 100; ++i) learnt.observe(2, 1, 3);
  EXPECT_NEAR(learnt.median(40), 3, 0.15);
  EXPECT_EQ(learnt.median(1), 1);
}

TEST(Stretch, AChangeIsFollowed) {
  Stretch learnt;
  for (int i = 0; i < 500; ++i) learnt.observe(1, 1, 3);
  for (int i = 0; i < 150; ++i) learnt.observe(1, 1, 1.5);
  EXPECT_NEAR(learnt.median(1), 1.5, 0.1);
}

RC_GTEST_PROP(Stretch, IsFiniteAndPositive, (std::uint64_t seed)) {
  Rng rng(seed, "any");
  Stretch learnt;
  for (int i = 0; i < 50; ++i) {
    learnt.observe(std::pow(10.0, rng.uniform(-1, 12)), std::pow(10.0, rng.uniform(-9, 5)),
                   rng.chance(0.3) ? 0 : std::pow(10.0, rng.uniform(-9, 5)));
    for (const double others : {0.0, 1.0, 1000.0, 1e15}) {
      RC_ASSERT(std::isfinite(learnt.median(others)));
      RC_ASSERT(learnt.median(others) > 0);
    }
  }
}

}  // namespace
}  // namespace signalbox::perf
