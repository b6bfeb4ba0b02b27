// SPDX-License-Identifier: Apache-2.0
// What a gate believes of passes that it cannot see.
#include "core/dispatch/gate.h"

#include <gtest/gtest.h>

#include <array>

namespace signalbox::dispatch {
namespace {

using namespace std::chrono_literals;
using model::AttemptId;
using model::RequestId;

constexpr double kChunk = 8000;
const Instant kStart{10s};

class GateTest : public testing::Test {
 protected:
  void depart(Duration after, std::vector<Gate::Aboard> who, Duration length = 1s) {
    gate_.depart(kStart + after, length, kChunk, who);
  }
  static Gate::Aboard who(std::uint64_t id, std::uint32_t rank, double tokens,
                          bool silent = false) {
    Gate::Aboard a;
    a.request = RequestId(id);
    a.attempt = AttemptId(1);
    a.rank = rank;
    a.tokens = tokens;
    a.silent = silent;
    return a;
  }
  auto computed(std::uint64_t id, Duration after) {
    return gate_.computed(RequestId(id), AttemptId(1), kStart + after);
  }
  bool open(Duration after) const { return gate_.open(kStart + after); }
  std::array<Rank, 2> next(Duration after) {
    std::array<Rank, 2> ranks{};
    gate_.add_left_over({ranks, kChunk, 0, 1e-4, 0}, kStart + after);
    return ranks;
  }

  Gate gate_;
};

TEST_F(GateTest, IsOpenUntilSomebodyDeparts) {
  EXPECT_TRUE(open(0s));
  depart(0s, {who(1, 0, 1000)});
  EXPECT_FALSE(open(1ms));
  EXPECT_EQ(gate_.busy(kStart + 400ms), 600ms);
}

TEST_F(GateTest, TheFirstTokenOfAnyoneOpensIt) {
  depart(0s, {who(1, 0, 1000), who(2, 1, 4000)});
  EXPECT_EQ(computed(2, 800ms), 800ms);
  EXPECT_TRUE(gate_.over());
  EXPECT_FALSE(computed(1, 801ms)) << "one pass is measured once";
  EXPECT_FALSE(computed(7, 801ms)) << "was never aboard";
}

TEST_F(GateTest, AnotherAttemptOfARequestIsAnother) {
  depart(0s, {who(1, 0, 1000)});
  EXPECT_FALSE(gate_.computed(RequestId(1), AttemptId(2), kStart + 1s));
  EXPECT_FALSE(gate_.over());
}

TEST_F(GateTest, OpensWhenAllHaveLeft) {
  depart(0s, {who(1, 0, 1000), who(2, 1, 4000)});
  gate_.left(RequestId(1), AttemptId(1));
  EXPECT_FALSE(gate_.over());
  gate_.left(RequestId(2), AttemptId(1));
  EXPECT_TRUE(gate_.over());
}

TEST_F(GateTest, SilenceIsBelievedForSomeTime) {
  depart(0s, {who(1, 0, 1000)});
  EXPECT_FALSE(open(2900ms));
  EXPECT_TRUE(open(3s));
}

TEST_F(GateTest, WhatIsLateIsExpectedAsLateAgain) {
  depart(0s, {who(1, 0, 1000)});
  EXPECT_EQ(gate_.begins_in(kStart + 400ms), 600ms);
  EXPECT_EQ(gate_.begins_in(kStart + 1s), 0s);
  EXPECT_EQ(gate_.begins_in(kStart + 4s), 3s);
  (void)computed(1, 5s);
  EXPECT_EQ(gate_.begins_in(kStart + 5s), 0s);
}

TEST_F(GateTest, WhoseFirstTokenNobodySeesIsDoneAsPredicted) {
  depart(0s, {who(1, 0, 1000, true)});
  EXPECT_FALSE(open(999ms));
  EXPECT_TRUE(open(1s));
}

TEST_F(GateTest, ALongPromptGoesOn) {
  depart(0s, {who(1, 0, 20'000), who(2, 1, 500)});
  EXPECT_TRUE(gate_.goes_on());
  EXPECT_EQ(gate_.passes_to_come(kStart), 2);
  EXPECT_EQ(computed(2, 1s), 1s) << "ends in the first pass";
  EXPECT_EQ(next(1s)[0].tokens, kChunk);
  EXPECT_EQ(next(1s)[1].tokens, 0);
  depart(1s, {});
  EXPECT_EQ(next(1s + 700ms)[0].tokens, 4000) << "20,000 less two chunks";
  depart(2s, {});
  EXPECT_FALSE(gate_.goes_on());
  EXPECT_EQ(computed(1, 2500ms), 500ms);
}

TEST_F(GateTest, ThePassThatFollowsByItselfIsBoardedBeforeItBegins) {
  depart(0s, {who(1, 0, 20'000)});
  EXPECT_FALSE(open(600ms));
  EXPECT_TRUE(open(700ms));
  depart(700ms, {who(2, 1, 1000)});
  EXPECT_TRUE(gate_.announced(kStart + 800ms));
  EXPECT_TRUE(open(800ms)) << "others may join them";
  EXPECT_EQ(gate_.begins_in(kStart + 800ms), 200ms);
  EXPECT_EQ(next(800ms)[1].tokens, 1000);
  depart(800ms, {who(3, 1, 500)});
  EXPECT_EQ(next(800ms)[1].tokens, 1500);
  EXPECT_FALSE(open(1050ms)) << "it has begun";
  EXPECT_EQ(computed(2, 2s), 1s) << "from its predicted start";
}

TEST_F(GateTest, WhoComesOutOfThePassBeforeTellsWhenThisOneBegan) {
  depart(0s, {who(1, 0, 20'000), who(2, 1, 500)});
  depart(700ms, {who(3, 1, 1000)});
  EXPECT_FALSE(computed(2, 900ms));
  EXPECT_FALSE(gate_.announced(kStart + 901ms));
  EXPECT_EQ(computed(3, 1900ms), 1s);
}

TEST_F(GateTest, TwoOnOneRankAreComputedInTheirOrder) {
  depart(0s, {who(1, 0, 5000), who(2, 0, 5000)});
  EXPECT_EQ(next(1s)[0].tokens, 2000);
  EXPECT_EQ(computed(1, 1s), 1s);
}

}  // namespace
}  // namespace signalbox::dispatch
