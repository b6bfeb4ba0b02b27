// SPDX-License-Identifier: Apache-2.0
// Goal: failed requests are tried again as the OpenAI SDKs do. Method: every outcome, every try.
#include "sim/sdk.h"

#include <gtest/gtest.h>

#include <set>

namespace signalbox::sim {
namespace {

using namespace std::chrono_literals;
using model::Outcome;

TEST(Sdk, RetriesWhatMayPassAndNothingElse) {
  const std::set<Outcome> never = {Outcome::Completed, Outcome::EngineClientError,
                                   Outcome::Truncated, Outcome::ClientGone};
  for (const Outcome outcome : model::kOutcomes) {
    EXPECT_EQ(is_retried(outcome), !never.contains(outcome)) << model::label(outcome);
  }
}

TEST(Sdk, BacksOffTwiceAsLongEachTimeUpToEightSeconds) {
  Sdk sdk;
  sdk.retries_max = 10;
  Rng rng(1, "sdk");
  for (int retries = 0; retries < 10; ++retries) {
    const Duration most = std::min<Duration>(8s, 500ms * (1 << retries));
    Duration least_seen = most;
    for (int i = 0; i < 100; ++i) {
      const auto delay = retry_delay(sdk, retries, 0s, rng);
      ASSERT_TRUE(delay);
      EXPECT_LE(*delay, most);
      EXPECT_GE(*delay, most * 3 / 4 - 1ns);
      least_seen = std::min(least_seen, *delay);
    }
    EXPECT_LT(least_seen, most * 9 / 10) << "without jitter, clients come back together";
  }
}

TEST(Sdk, GivesUpAfterTwoRetries) {
  Rng rng(1, "sdk");
  EXPECT_TRUE(retry_delay({}, 0, 0s, rng));
  EXPECT_TRUE(retry_delay({}, 1, 0s, rng));
  EXPECT_FALSE(retry_delay({}, 2, 0s, rng));
}

TEST(Sdk, WaitsForRetryAfterExactlyUnlessItIsTooLong) {
  Rng rng(1, "sdk");
  EXPECT_EQ(retry_delay({}, 0, 7s, rng), 7s);
  EXPECT_EQ(retry_delay({}, 0, 120s, rng), 120s);
  EXPECT_FALSE(retry_delay({}, 0, 121s, rng));
  EXPECT_LE(*retry_delay({}, 0, Duration(-1), rng), 500ms);
}

}  // namespace
}  // namespace signalbox::sim
