// SPDX-License-Identifier: Apache-2.0
// Goal: an engine never runs dry, and is sent no more than that takes.
// Method: feeds by hand; a law over drawn feeds.
#include "core/dispatch/late.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace signalbox::dispatch {
namespace {

using namespace std::chrono_literals;

constexpr Config kConfig{};

TEST(Fed, needs_somebody_behind_the_first) {
  EXPECT_FALSE(fed(kConfig, {0, 0, 0, 8192}));
  EXPECT_FALSE(fed(kConfig, {1, 100'000, 100'000, 8192})) << "the first may be nearly done";
  EXPECT_TRUE(fed(kConfig, {2, 110'000, 100'000, 8192}));
  EXPECT_FALSE(fed(kConfig, {2, 108'000, 100'000, 8192}));
}

TEST(Fed, is_two_passes_of_short_prompts) {
  EXPECT_FALSE(fed(kConfig, {16, 16'000, 1'000, 8192}));
  EXPECT_TRUE(fed(kConfig, {17, 17'000, 1'000, 8192}));
}

RC_GTEST_PROP(Fed, whoever_is_fed_has_a_full_pass_behind_the_first, ()) {
  Feed feed;
  feed.requests = *rc::gen::inRange(0, 50);
  feed.head_tokens = feed.requests > 0 ? *rc::gen::inRange(1, 100'000) : 0;
  feed.tokens = feed.head_tokens + (feed.requests > 1 ? *rc::gen::inRange(1, 100'000) : 0);
  feed.chunk_tokens = *rc::gen::inRange(1, 20'000);
  const std::int64_t behind = feed.tokens - feed.head_tokens;
  if (fed(kConfig, feed)) RC_ASSERT(behind >= feed.chunk_tokens);
  if (feed.requests > 1 && behind >= 2 * feed.chunk_tokens) RC_ASSERT(fed(kConfig, feed));
}

TEST(Turn, is_the_arrival_later_by_the_own_work) {
  const Instant t{100s};
  EXPECT_EQ(turn(kConfig, t, 0), t);
  EXPECT_EQ(turn(kConfig, t, 2.5), t + 10s);
  Config fair;
  fair.cost_weight = 0;
  EXPECT_EQ(turn(fair, t, 2.5), t);
}

}  // namespace
}  // namespace signalbox::dispatch
