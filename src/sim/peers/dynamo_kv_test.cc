// SPDX-License-Identifier: Apache-2.0
// Goal: Dynamo's cost, softmax and queue are those of its source. Method: costs worked by hand in
// blocks of 16 tokens; frequencies of the softmax against its formula.
#include "sim/peers/desk_for_test.inc"

#include <cmath>

namespace signalbox::peers {
namespace {

// A prompt of 64 blocks, 32 of them cached at 1, where 48 blocks of another prompt are in flight.
//   0: 64 + 64 = 128      1: (64 − 32) + (48 + 64) = 144; without that flight 96
TEST(DynamoKv, PrefillLessOverlapPlusDecodeBlocks) {
  Desk desk(dynamo_kv(), 2);
  desk.store(1, prompt({{1, 512}}));
  const auto pieces = prompt({{1, 512}, {2, 512}});
  EXPECT_EQ(desk.choose(pieces).slot, 1u);
  EXPECT_EQ(desk.choose(pieces).cached, 512);
  Flight flight = desk.send_to(1, prompt({{9, 768}}), 768);
  EXPECT_EQ(desk.slot(pieces), 0u);
  desk.end(flight);
  EXPECT_EQ(desk.slot(pieces), 1u);
  desk.evict(1, prompt({{1, 512}})[0]);
  EXPECT_EQ(desk.choose(pieces).cached, 0);
}

// Active prefill tokens: 33 blocks more than the overlap wins.
TEST(DynamoKv, UncachedTokensCountUntilTheFirstToken) {
  Desk desk(dynamo_kv(), 2);
  desk.store(1, prompt({{1, 512}}));
  const auto pieces = prompt({{1, 512}, {2, 512}});
  desk.fleet[1].prefill_tokens = 31 * 16;
  EXPECT_EQ(desk.slot(pieces), 1u);
  desk.fleet[1].prefill_tokens = 33 * 16;
  EXPECT_EQ(desk.slot(pieces), 0u);
}

// Two prompts in flight with the same 32 blocks: they count once, and a third adds its own 4 only.
TEST(DynamoKv, SharedBlocksInFlightCountOnce) {
  Desk desk(dynamo_kv(0, 1, 0), 2);  // decode blocks alone
  desk.send_to(0, prompt({{1, 512}, {2, 64}}));
  desk.send_to(0, prompt({{1, 512}, {3, 64}}));     // 40 blocks in flight
  desk.send_to(1, prompt({{5, 112}}));              // 7 blocks
  const auto third = prompt({{1, 512}, {4, 64}});   // 0: 44, 1: 7 + 36 = 43
  EXPECT_EQ(desk.slot(third), 1u);
  desk.send_to(1, prompt({{6, 32}}));               // 45
  EXPECT_EQ(desk.slot(third), 0u);
}

TEST(DynamoKv, SoftmaxOverNormalisedCosts) {
  Desk desk(dynamo_kv(0.5, 1, 0), 3);
  desk.send_to(1, prompt({{1, 160}}));  // costs 1, 11, 21 blocks: normalised 0, 0.5, 1
  desk.send_to(2, prompt({{2, 320}}));
  std::vector<int> count(3);
  for (int i = 0; i < 10'000; ++i) ++count[desk.slot(prompt({{7, 16}}))];
  const double sum = 1 + std::exp(-1) + std::exp(-2);
  EXPECT_NEAR(count[0], 1e4 / sum, 250);
  EXPECT_NEAR(count[1], 1e4 * std::exp(-1) / sum, 250);
  EXPECT_NEAR(count[2], 1e4 * std::exp(-2) / sum, 250);
}

TEST(DynamoKv, EqualCostsAreDrawn) {
  Desk desk(dynamo_kv(), 2);
  int second = 0;
  for (int i = 0; i < 1'000; ++i) second += desk.slot(prompt({{1, 16}})) == 1;
  EXPECT_NEAR(second, 500, 80);
}

TEST(DynamoKv, WaitsWhileEverybodyHasSixteenBatchesToPrefill) {
  Desk desk(dynamo_kv(), 2);
  desk.fleet[0].prefill_tokens = 16 * 8'192 + 1;
  desk.fleet[1].prefill_tokens = 16 * 8'192 + 1;
  EXPECT_EQ(desk.choose(prompt({{1, 16}})).kind, Choice::Kind::Wait);
  desk.fleet[1].prefill_tokens = 16 * 8'192;
  EXPECT_EQ(desk.choose(prompt({{1, 16}})).kind, Choice::Kind::Place);
}

}  // namespace
}  // namespace signalbox::peers
