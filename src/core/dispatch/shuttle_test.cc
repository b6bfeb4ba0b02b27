// SPDX-License-Identifier: Apache-2.0
// The rule: bounds of the hold, and a small gated server against its law.
#include "core/dispatch/shuttle.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/rng.h"

namespace signalbox::dispatch {
namespace {

using model::RequestId;

constexpr double kPerToken = 1e-4;

Instant at(double seconds) { return Instant{} + from_seconds(seconds); }

Passenger passenger(std::uint64_t id, double since, double tokens) {
  return {RequestId(id), at(since), tokens, tokens * kPerToken, kNever};
}

class ShuttleTest : public ::testing::Test {
 protected:
  const Shuttle::Plan& plan(double now) {
    std::ranges::fill(ranks_, Rank{});
    return shuttle_.plan(waiting_, instance_, rhythm_, at(now));
  }

  Config config_;
  Shuttle shuttle_{config_};
  std::array<Rank, 4> ranks_;
  Instance instance_{ranks_, 8000, 0.05, kPerToken, 0};
  Rhythm rhythm_{4, std::chrono::milliseconds(800), at(10)};
  std::vector<Passenger> waiting_;
};

TEST_F(ShuttleTest, NobodyWaitsNobodyDeparts) {
  EXPECT_EQ(plan(11).why, Why::Nobody);
  EXPECT_TRUE(plan(11).departures.empty());
}

TEST_F(ShuttleTest, FreeSeatsWaitForTheirTurn) {
  waiting_ = {passenger(1, 10, 1000)};
  const auto& held = plan(10.01);
  EXPECT_EQ(held.why, Why::Filling);
  EXPECT_NEAR(to_seconds(held.until - at(10)), 0.75 * 0.8 / 4, 1e-6);  // three of four seats free
  const Instant until = held.until;
  const auto& gone = shuttle_.plan(waiting_, instance_, rhythm_, until);
  EXPECT_EQ(gone.why, Why::Departs);
  EXPECT_EQ(gone.departures.size(), 1u);
}

TEST_F(ShuttleTest, AFullPassIsNotHeld) {
  for (std::uint64_t i = 1; i <= 8; ++i) waiting_.push_back(passenger(i, 10, 4000));
  EXPECT_EQ(plan(10).why, Why::Departs);
  EXPECT_EQ(plan(10).departures.size(), 4u);  // two short passes cost less
}

TEST_F(ShuttleTest, TheHoldEndsWhereAnObjectiveWouldBreak) {
  waiting_ = {passenger(1, 10, 1000)};
  waiting_[0].latest = at(10.03);
  EXPECT_EQ(plan(10.01).until, at(10.03));
  EXPECT_EQ(plan(10.03).why, Why::Departs);
}

TEST_F(ShuttleTest, TheHoldIsBoundedWhateverTheRhythmSays) {
  waiting_ = {passenger(1, 10, 1000)};
  rhythm_.pass = std::chrono::seconds(1000);
  EXPECT_EQ(plan(10.1).until, at(10) + config_.hold_max);
  EXPECT_EQ(plan(10.5).why, Why::Departs);
}

TEST_F(ShuttleTest, OneRankIsNeverHeld) {
  waiting_ = {passenger(1, 10, 1000)};
  instance_.ranks = std::span(ranks_).first(1);
  EXPECT_EQ(plan(10).why, Why::Departs);
}

TEST_F(ShuttleTest, WhoHasWaitedLongGoesBeforeTheCheap) {
  instance_.ranks = std::span(ranks_).first(1);
  waiting_ = {passenger(1, 10, 100), passenger(2, 4, 7950)};
  EXPECT_EQ(plan(10).line[0].request, RequestId(2));
  waiting_[1].since = at(9.9);
  EXPECT_EQ(plan(10).line[0].request, RequestId(1));
}

TEST_F(ShuttleTest, ABacklogFillsEveryRank) {
  Rng rng(9, "backlog");
  for (std::uint64_t i = 1; i <= 150; ++i) {
    waiting_.push_back(passenger(i, 10 + rng.uniform(), 200 + rng.uniform() * 6000));
  }
  plan(11);
  for (const Rank& r : ranks_) EXPECT_GE(r.tokens, instance_.chunk_tokens);
}

// What fills this pass is no backlog while three others will take their share of it.
TEST_F(ShuttleTest, ALineForAllInstancesDoesNotFillOne) {
  for (std::uint64_t i = 1; i <= 20; ++i) waiting_.push_back(passenger(i, 10, 2000));
  EXPECT_EQ(plan(11).departures.size(), 4u);
  rhythm_.instances = 1;
  EXPECT_GE(plan(11).departures.size(), 16u);
}

// Nobody starves: whatever joins, the one that came first departs after boundedly many passes.
TEST_F(ShuttleTest, TheLongestPromptDepartsThoughShortOnesKeepComing) {
  Rng rng(10, "crowd");
  waiting_ = {passenger(1, 0, 7900)};
  std::uint64_t next = 2;
  int passes = 0;
  for (double now = 0; passes < 40; ++passes) {
    for (int i = 0; i < 30; ++i) {
      waiting_.push_back(passenger(next++, now + 0.001 * i, 200 + rng.uniform() * 1500));
    }
    now += 0.8;
    const auto& planned = plan(now);
    std::vector<RequestId> gone;
    for (const Departure& d : planned.departures) {
      gone.push_back(planned.line[d.passenger].request);
    }
    if (std::ranges::find(gone, RequestId(1)) != gone.end()) break;
    std::erase_if(waiting_, [&](const Passenger& p) {
      return std::ranges::find(gone, p.request) != gone.end();
    });
  }
  EXPECT_LE(passes, 8);
}

TEST(LeavesHome, OnlyWhenWaitingThereCostsMore) {
  const Config config;
  EXPECT_FALSE(leaves_home(config, 0.5, 0.4, 0, 32));
  EXPECT_TRUE(leaves_home(config, 0.9, 0.4, 0, 32));
  EXPECT_FALSE(leaves_home(config, 0.9, 0.4, 32, 32));  // a crowd makes recomputing dearer
  EXPECT_TRUE(leaves_home(config, 0.1, 0, 0, 32));      // nothing is held there
}

}  // namespace
}  // namespace signalbox::dispatch
