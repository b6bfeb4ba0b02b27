// SPDX-License-Identifier: Apache-2.0
// Goal: Preble exploits long matches, explores by load, eviction and prefill. Method: worked by
// hand; a token takes a millisecond of prefill, an answer 45 · 0.15 s = 6.75 s until one is known.
#include "sim/peers/desk_for_test.inc"

namespace signalbox::peers {
namespace {

TEST(Preble, ExploitsWhenTheCachedPartIsAtLeastTheRest) {
  Desk desk(preble());
  desk.send_to(2, prompt({{1, 512}}));
  EXPECT_EQ(desk.choose(prompt({{1, 512}, {2, 512}})).slot, 2u);
  EXPECT_EQ(desk.choose(prompt({{1, 512}, {2, 512}})).cached, 512);
  EXPECT_NE(desk.slot(prompt({{1, 512}, {2, 513}})), 2u);  // explores: 2 has the load
}

TEST(Preble, AmongEqualMatchesTheLeastLoad) {
  Desk desk(preble());
  const auto pieces = prompt({{1, 512}});
  desk.send_to(1, pieces);
  desk.send_to(2, pieces);
  desk.send_to(1, prompt({{2, 16}}));
  EXPECT_EQ(desk.slot(pieces), 2u);
}

// L of 0 is 1 s + 6.75 s, of 1 it is 1.2 s + 6.75 s. The prompt misses 900 tokens at 1 and 1,200 at
// 0 (300 of 1,200 cached: less than the rest).
TEST(Preble, ExploresByLoadAndOwnPrefill) {
  Desk desk(preble(), 2);
  desk.send_to(0, prompt({{1, 1'000}}));
  desk.send_to(1, prompt({{2, 300}, {3, 900}}));
  EXPECT_EQ(desk.slot(prompt({{2, 300}, {4, 900}})), 1u);  // 8.85 against 8.95
  desk.send_to(1, prompt({{5, 150}}), 150);                // 6.75 more
  EXPECT_EQ(desk.slot(prompt({{2, 300}, {4, 900}})), 0u);
}

// Both have 1,024 tokens of cache, full with two prompts of 512. At 0 the window used its older one
// three times, at 1 its older one once. The loads are made equal; eviction decides.
TEST(Preble, EvictionCostsWhatOthersUse) {
  Desk desk(preble(), 2);
  for (const Slot slot : desk.all) desk.look(slot, 0, 0, 0, 1'024);
  for (int i = 0; i < 3; ++i) desk.send_to(0, prompt({{1, 512}}), 512);
  desk.send_to(0, prompt({{2, 512}}), 512);
  for (int i = 0; i < 3; ++i) desk.send_to(1, prompt({{3, 512}}), 512);
  desk.send_to(1, prompt({{4, 512}}), 512);
  EXPECT_EQ(desk.slot(prompt({{9, 512}})), 0u);  // all equal: the first
  desk.send_to(0, prompt({{1, 512}}), 512);      // 0: one request more, 1 is used again
  desk.send_to(1, prompt({{4, 512}}), 512);      // 1: one request more; its oldest is prompt 3
  // At 0 the oldest is prompt 2, used once of 10: 0.0512 s. At 1 prompt 3, three times: 0.1536 s.
  EXPECT_EQ(desk.slot(prompt({{9, 512}})), 0u);
  desk.send_to(0, prompt({{2, 512}}), 512);      // 0's oldest is prompt 1, used four times
  desk.send_to(1, prompt({{4, 512}}), 512);
  EXPECT_EQ(desk.slot(prompt({{9, 512}})), 1u);
}

TEST(Preble, LoadIsForgottenAfterThreeMinutes) {
  Desk desk(preble(), 2);
  desk.send_to(0, prompt({{1, 10'000}}));
  EXPECT_EQ(desk.slot(prompt({{2, 100}})), 1u);
  desk.now += 179s;
  EXPECT_EQ(desk.slot(prompt({{2, 100}})), 1u);
  desk.now += 1s;
  EXPECT_EQ(desk.slot(prompt({{2, 100}})), 0u);
}

TEST(Preble, DecodeTimeIsTheMeanAnswerAtTheMedianTime) {
  Desk desk(preble(), 2);
  Flight flight = desk.send_to(0, prompt({{1, 100}}));
  desk.first_token(flight);
  desk.now += 2s;
  desk.end(flight, 201);  // 10 ms a token, 201 tokens; medians: of {0.15, 0.01} the larger
  Flight again = desk.send_to(0, prompt({{1, 100}}));
  desk.first_token(again);
  desk.now += 2s;
  desk.end(again, 201);   // {0.15, 0.01, 0.01}: 0.01
  desk.now += 180s;
  desk.send_to(0, prompt({{2, 100}}));    // 0.1 + 201 · 0.01 = 2.11 s
  desk.send_to(1, prompt({{3, 100}}));    // 0.1 + 201 · 0.15 = 30.25 s
  desk.send_to(0, prompt({{4, 1'000}}));  // 5.12 s in all
  EXPECT_EQ(desk.slot(prompt({{9, 100}})), 0u);
}

TEST(Preble, AnOverloadedHomeHandsOver) {
  Desk desk(preble(), 2);
  const auto pieces = prompt({{1, 512}});
  desk.send_to(1, prompt({{2, 100}}));               // 6.85 s
  for (int i = 0; i < 14; ++i) desk.send_to(0, pieces, 512);  // 14 · 6.75 = 94.5 s
  EXPECT_EQ(desk.slot(pieces), 0u);
  desk.send_to(0, pieces, 512);                      // 101.25 s: 14.8 times
  EXPECT_EQ(desk.slot(pieces), 0u);
  desk.send_to(0, pieces, 512);                      // 108 s: 15.8 times
  EXPECT_EQ(desk.slot(pieces), 1u);
}

}  // namespace
}  // namespace signalbox::peers
