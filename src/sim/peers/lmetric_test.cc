// SPDX-License-Identifier: Apache-2.0
// Goal: LMetric's product. Method: worked by hand.
#include "sim/peers/desk_for_test.inc"

namespace signalbox::peers {
namespace {

// (queued + uncached) · (requests + 1):
//   0: (0 + 1,000) · 3 = 3,000    1: (600 + 200) · 4 = 3,200    2: (0 + 1,000) · 4 = 4,000
TEST(Lmetric, TokensToPrefillTimesBatch) {
  Desk desk(lmetric());
  const auto pieces = prompt({{1, 800}, {2, 200}});
  desk.store(1, prompt({{1, 800}}));
  desk.fleet[0].in_flight = 2;
  desk.fleet[1].in_flight = 3;
  desk.fleet[1].prefill_tokens = 600;
  desk.fleet[2].in_flight = 3;
  EXPECT_EQ(desk.slot(pieces), 0u);
  desk.fleet[1].prefill_tokens = 549;  // 2,996
  EXPECT_EQ(desk.choose(pieces).slot, 1u);
  EXPECT_EQ(desk.choose(pieces).cached, 800);
  desk.evict(1, prompt({{1, 800}})[0]);
  EXPECT_EQ(desk.slot(pieces), 0u);
}

TEST(Lmetric, AnIdleEngineStillCountsItsTokens) {
  Desk desk(lmetric(), 2);
  desk.store(1, prompt({{1, 512}}));
  EXPECT_EQ(desk.slot(prompt({{1, 512}, {2, 16}})), 1u);
}

}  // namespace
}  // namespace signalbox::peers
