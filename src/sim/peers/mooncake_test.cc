// SPDX-License-Identifier: Apache-2.0
// Goal: Conductor takes the least estimated time to first token. Method: worked by hand; a token
// takes a millisecond of prefill.
#include "sim/peers/desk_for_test.inc"

namespace signalbox::peers {
namespace {

TEST(Mooncake, QueueAndPrefillWithTheOwnPrefix) {
  Desk desk(mooncake(), 2);
  desk.store(1, prompt({{1, 512}}));
  const auto pieces = prompt({{1, 512}, {2, 488}});  // 0: 1 s, 1: 0.488 s
  EXPECT_EQ(desk.choose(pieces).slot, 1u);
  Flight busy = desk.send_to(1, prompt({{3, 520}}));  // 1: 1.008 s
  EXPECT_EQ(desk.slot(pieces), 0u);
  desk.now += 10ms;  // of which the head has had 0.010 s
  EXPECT_EQ(desk.slot(pieces), 1u);
  desk.send_to(1, prompt({{4, 300}}));  // 1: 1.298 s
  EXPECT_EQ(desk.slot(pieces), 0u);
  desk.first_token(busy);  // 1: 0.788 s
  EXPECT_EQ(desk.slot(pieces), 1u);
}

TEST(Mooncake, TheHeadHasHadNoMoreThanItself) {
  Desk desk(mooncake(), 2);
  desk.send_to(0, prompt({{1, 100}}));
  desk.send_to(0, prompt({{2, 400}}));
  desk.send_to(1, prompt({{3, 450}}));
  desk.now += 1s;  // 0: 0.4 s left, 1: none
  EXPECT_EQ(desk.slot(prompt({{9, 100}})), 1u);
  desk.send_to(1, prompt({{4, 399}}));
  EXPECT_EQ(desk.slot(prompt({{9, 100}})), 1u);  // 0.399 s
  desk.send_to(1, prompt({{5, 2}}));
  EXPECT_EQ(desk.slot(prompt({{9, 100}})), 0u);
}

TEST(Mooncake, RefusesWhatMissesTheObjectiveEverywhere) {
  Desk desk(mooncake(2s), 2);
  desk.send_to(0, prompt({{1, 1'500}}));
  desk.send_to(1, prompt({{2, 1'501}}));
  EXPECT_EQ(desk.choose(prompt({{3, 500}})).kind, Choice::Kind::Place);
  EXPECT_EQ(desk.choose(prompt({{3, 501}})).kind, Choice::Kind::Refuse);
}

TEST(Mooncake, PassesOverWhoHasNoMemoryLeftWhileSomebodyHas) {
  Desk desk(mooncake(), 2);
  for (const Slot slot : desk.all) desk.look(slot, 0, 0, 0, 1'000);
  desk.store(0, prompt({{1, 400}}));
  Flight flight = desk.send_to(0, prompt({{2, 500}}));
  desk.first_token(flight);
  desk.now += 1s;
  EXPECT_EQ(desk.slot(prompt({{1, 400}, {3, 100}})), 0u);  // 1,000 in all
  EXPECT_EQ(desk.slot(prompt({{1, 400}, {3, 101}})), 1u);
  desk.send_to(1, prompt({{4, 600}}));
  EXPECT_EQ(desk.slot(prompt({{1, 400}, {3, 101}})), 0u);  // nobody has
  Flight other = desk.send_to(1, prompt({{5, 100}}));
  desk.end(flight);
  desk.first_token(other);
  EXPECT_EQ(desk.slot(prompt({{1, 400}, {6, 500}})), 0u);  // 0 has, again
  EXPECT_EQ(desk.slot(prompt({{1, 400}, {6, 601}})), 0u);  // nobody has
}

TEST(Mooncake, OfEqualsTheOneThatDecodesLeast) {
  Desk desk(mooncake(), 4);
  desk.fleet[0].in_flight = 3;
  desk.fleet[1].in_flight = 1;
  desk.fleet[2].in_flight = 2;
  desk.fleet[3].in_flight = 1;
  EXPECT_EQ(desk.slot(prompt({{1, 100}})), 1u);
  desk.store(0, prompt({{1, 100}}));  // less to prefill outweighs it
  EXPECT_EQ(desk.slot(prompt({{1, 100}, {2, 10}})), 0u);
}

TEST(Mooncake, WhoEndsLeavesTheQueueFromAnyPlace) {
  Desk desk(mooncake(), 2);
  desk.send_to(0, prompt({{1, 300}}));
  Flight second = desk.send_to(0, prompt({{2, 500}}));
  desk.send_to(1, prompt({{3, 301}}));
  desk.end(second);
  EXPECT_EQ(desk.slot(prompt({{9, 16}})), 0u);
}

}  // namespace
}  // namespace signalbox::peers
