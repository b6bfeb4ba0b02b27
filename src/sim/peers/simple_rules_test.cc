// SPDX-License-Identifier: Apache-2.0
// Goal: the rules that know no prompts are what their names say.
// Method: counts set by hand; draws counted.
#include "sim/peers/desk_for_test.inc"

#include <array>

namespace signalbox::peers {
namespace {

TEST(RoundRobin, GoesRoundOverWhoIsThere) {
  Desk desk(round_robin());
  std::vector<Slot> turns;
  for (int i = 0; i < 6; ++i) turns.push_back(desk.slot({}));
  EXPECT_EQ(turns, (std::vector<Slot>{0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(desk.choose_among({1, 2}, {}).slot, 1u);  // the sixth turn, modulo two
  EXPECT_EQ(desk.choose_among({1, 2}, {}).slot, 2u);
}

TEST(RandomChoice, DrawsEachAboutAsOften) {
  Desk desk(random_choice(), 4);
  desk.fleet[0].in_flight = 1'000;  // does not matter
  std::array<int, 4> count{};
  for (int i = 0; i < 4'000; ++i) ++count[desk.slot({})];
  for (const int n : count) EXPECT_NEAR(n, 1'000, 130);
}

TEST(LeastRequests, TakesTheFewestAndDrawsAmongEquals) {
  Desk desk(least_requests(), 4);
  desk.fleet[0].in_flight = 5;
  desk.fleet[1].in_flight = 2;
  desk.fleet[2].in_flight = 3;
  desk.fleet[3].in_flight = 2;
  std::array<int, 4> count{};
  for (int i = 0; i < 1'000; ++i) ++count[desk.slot({})];
  EXPECT_EQ(count[0] + count[2], 0);
  EXPECT_NEAR(count[1], 500, 80);
}

TEST(LeastRequests, RetriesConnectionErrorsElsewhereOnly) {
  const Traits traits = least_requests()->traits();
  EXPECT_TRUE(traits.retry.on_connect_error);
  EXPECT_TRUE(traits.retry.avoids_tried);
  EXPECT_FALSE(traits.retry.on_failure);
  EXPECT_EQ(traits.breaker.failures, 1);
  EXPECT_EQ(traits.breaker.open, 10s);
}

// Of n workers with different counts, the k-th fewest wins against each of those above it: it is
// chosen in (n − k) of the n(n − 1)/2 pairs.
TEST(PowerOfTwo, ChoosesTheLighterOfTwoDrawn) {
  Desk desk(power_of_two(), 4);
  for (int i = 0; i < 4; ++i) desk.fleet[static_cast<std::size_t>(i)].in_flight = 10 * i;
  std::array<int, 4> count{};
  for (int i = 0; i < 6'000; ++i) ++count[desk.slot({})];
  EXPECT_NEAR(count[0], 3'000, 200);
  EXPECT_NEAR(count[1], 2'000, 200);
  EXPECT_NEAR(count[2], 1'000, 200);
  EXPECT_EQ(count[3], 0);
  EXPECT_EQ(desk.choose_among({3}, {}).slot, 3u);
}

TEST(Smg, RetriesAndBreaksAsItsDefaults) {
  const Traits traits = round_robin()->traits();
  EXPECT_EQ(traits.retry.most, 5);
  EXPECT_EQ(traits.retry.first, 50ms);
  EXPECT_EQ(traits.retry.longest, 30s);
  EXPECT_DOUBLE_EQ(traits.retry.factor, 1.5);
  EXPECT_DOUBLE_EQ(traits.retry.jitter, 0.2);
  EXPECT_TRUE(traits.retry.on_throttled && traits.retry.on_failure);
  EXPECT_EQ(traits.breaker.failures, 10);
  EXPECT_EQ(traits.breaker.open, 60s);
  EXPECT_EQ(traits.breaker.successes, 3);
}

}  // namespace
}  // namespace signalbox::peers
