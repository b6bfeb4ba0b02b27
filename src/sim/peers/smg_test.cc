// SPDX-License-Identifier: Apache-2.0
// Goal: SMG's two policies score as their sources say. Method: cases worked by hand at the
// thresholds.
#include "sim/peers/desk_for_test.inc"

namespace signalbox::peers {
namespace {

TEST(SmgCacheAware, FollowsAMatchOfMoreThanHalf) {
  Desk desk(smg_cache_aware());
  desk.send_to(2, prompt({{1, 512}}));
  desk.fleet[0].in_flight = 0;
  // 512 of 1,024 is not more than half: the least loaded.
  EXPECT_EQ(desk.slot(prompt({{1, 512}, {2, 512}})), 0u);
  EXPECT_EQ(desk.choose(prompt({{1, 512}, {2, 496}})).slot, 2u);
  EXPECT_EQ(desk.choose(prompt({{1, 512}, {2, 496}})).cached, 512);
}

TEST(SmgCacheAware, CountsWholePagesOnly) {
  Desk desk(smg_cache_aware());
  desk.send_to(2, prompt({{1, 31}}));
  desk.fleet[2].in_flight = 1;
  EXPECT_EQ(desk.choose(prompt({{1, 31}})).cached, 16);   // 16 of 31: more than half
  EXPECT_EQ(desk.slot(prompt({{1, 31}, {2, 1}})), 0u);    // 16 of 32: not
}

TEST(SmgCacheAware, LeavesTheMatchWhenImbalanced) {
  Desk desk(smg_cache_aware());
  const auto pieces = prompt({{1, 512}});
  desk.send_to(2, pieces);
  desk.fleet[0].in_flight = 5;
  desk.fleet[1].in_flight = 0;
  desk.fleet[2].in_flight = 32;  // a difference of 32 is balanced still
  EXPECT_EQ(desk.slot(pieces), 2u);
  desk.fleet[2].in_flight = 33;
  EXPECT_EQ(desk.slot(pieces), 1u);
  // 33 more, and not more than 1.1 times as many: balanced.
  desk.fleet[0].in_flight = desk.fleet[1].in_flight = 400;
  desk.fleet[2].in_flight = 433;
  EXPECT_EQ(desk.slot(pieces), 2u);
}

TEST(SmgCacheAware, TheTreeIsTrimmedEveryThirtySeconds) {
  Desk desk(smg_cache_aware(), 2);
  const auto first = prompt({{1, 512}});
  desk.send_to(1, first);
  for (std::uint64_t i = 0; i < 10'000; ++i) desk.send_to(1, prompt({{100 + i, 512}}));
  desk.fleet[1].in_flight = 1;
  EXPECT_EQ(desk.slot(first), 1u);
  desk.send_to(1, prompt({{50, 512}}));
  desk.fleet[1].in_flight = 1;
  desk.now += 31s;
  EXPECT_EQ(desk.choose(first).cached, 0);
  EXPECT_EQ(desk.choose(prompt({{10'099, 512}})).cached, 512);
}

// waiting 4,000 tokens + 1,000 sent over the default 2,000 tokens/s = 2.5 s; k = 0.8: 0.15 · 4 =
// 0.6 s.
TEST(SmgLeastLoad, DrainTimePlusKvBarrier) {
  Desk desk(smg_least_load(), 2);
  desk.fleet[0].waiting_tokens = 4'000;
  desk.fleet[1].waiting_tokens = 6'100;
  desk.look(0, 0, 0, 0.8);
  desk.look(1, 0, 0, 0.0);
  desk.send_to(0, prompt({{1, 1'000}}));
  EXPECT_EQ(desk.slot(prompt({{2, 10}})), 1u);  // 3.1 s against 3.05 s
  desk.send_to(1, prompt({{3, 200}}));          // 3.15 s
  EXPECT_EQ(desk.slot(prompt({{2, 10}})), 0u);
  desk.look(1, 0, 0, 0.0);                      // a poll takes what was sent since back
  EXPECT_EQ(desk.slot(prompt({{2, 10}})), 1u);
}

TEST(SmgLeastLoad, WithoutPollsItCountsRequests) {
  Desk desk(smg_least_load(), 2);
  desk.fleet[0].in_flight = 3;
  desk.fleet[1].in_flight = 2;
  EXPECT_EQ(desk.slot(prompt({{1, 10}})), 1u);
  // One has a fresh poll: the other's two requests count 1,024 tokens each at 2,000 tokens/s.
  desk.fleet[0].waiting_tokens = 2'000;
  desk.look(0, 0, 0);
  EXPECT_EQ(desk.slot(prompt({{1, 10}})), 0u);  // 1 s against 1.024 s
  desk.now += 31s;                              // too old: as if nobody were polled
  EXPECT_EQ(desk.slot(prompt({{1, 10}})), 1u);
}

}  // namespace
}  // namespace signalbox::peers
