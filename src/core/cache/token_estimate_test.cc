// SPDX-License-Identifier: Apache-2.0
// Goal: tokens per byte are learnt per model and script. Method: made-up usage.
#include "core/cache/token_estimate.h"

#include <gtest/gtest.h>

namespace signalbox::cache {
namespace {

using model::ModelId;
using model::Script;

TEST(TokenEstimate, StartsFromAPrior) {
  const TokenEstimate estimate;
  EXPECT_NEAR(static_cast<double>(estimate.tokens(ModelId(1), Script::Latin, 4000)), 1000, 100);
  EXPECT_GT(estimate.per_byte(ModelId(1), Script::Code),
            estimate.per_byte(ModelId(1), Script::Latin));
}

TEST(TokenEstimate, FollowsWhatTheEngineReports) {
  TokenEstimate estimate;
  for (int i = 0; i < 100; ++i) estimate.observe(ModelId(1), Script::Latin, 4000, 2000);
  EXPECT_NEAR(estimate.per_byte(ModelId(1), Script::Latin), 0.5, 0.01);
  for (int i = 0; i < 300; ++i) estimate.observe(ModelId(1), Script::Latin, 4000, 800);
  EXPECT_NEAR(estimate.per_byte(ModelId(1), Script::Latin), 0.2, 0.01);
}

TEST(TokenEstimate, KeepsModelsAndScriptsApart) {
  TokenEstimate estimate;
  const double before = estimate.per_byte(ModelId(2), Script::Latin);
  for (int i = 0; i < 100; ++i) estimate.observe(ModelId(1), Script::Latin, 4000, 4000);
  EXPECT_EQ(estimate.per_byte(ModelId(2), Script::Latin), before);
  EXPECT_EQ(estimate.per_byte(ModelId(1), Script::Cjk),
            TokenEstimate().per_byte(ModelId(1), Script::Cjk));
}

TEST(TokenEstimate, LearnsNothingFromImagesAndEmptyPrompts) {
  TokenEstimate estimate;
  const double before = estimate.per_byte(ModelId(1), Script::Latin);
  estimate.observe(ModelId(1), Script::Latin, 20, 5000);
  estimate.observe(ModelId(1), Script::Latin, 1'000'000, 10);
  estimate.observe(ModelId(1), Script::Latin, 0, 10);
  estimate.observe(ModelId(1), Script::Latin, 100, -1);
  EXPECT_EQ(estimate.per_byte(ModelId(1), Script::Latin), before);
}

}  // namespace
}  // namespace signalbox::cache
