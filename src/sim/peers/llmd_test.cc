// SPDX-License-Identifier: Apache-2.0
// Goal: llm-d's old and new defaults choose as published. Method: scores worked by hand.
#include "sim/peers/desk_for_test.inc"

namespace signalbox::peers {
namespace {

// 3 · share + 2 · queue + 2 · (1 − kv) + 2 · 0.5.
TEST(LlmdBlend, WeighsPrefixQueueAndKv) {
  Desk desk(llmd_blend(), 2);
  desk.send_to(0, prompt({{1, 512}}));
  const auto half = prompt({{1, 512}, {2, 512}});  // share 0.5 at 0: 1.5
  desk.look(0, 4, 0, 0.5);
  desk.look(1, 0, 0, 0.5);
  EXPECT_EQ(desk.slot(half), 1u);                  // 1.5 + 0 + 1 against 0 + 2 + 1
  desk.look(1, 4, 0, 0.9);
  EXPECT_EQ(desk.slot(half), 0u);                  // equal queues count 2 each
  desk.look(0, 0, 0, 1.0);
  desk.look(1, 0, 0, 0.2);
  EXPECT_EQ(desk.slot(half), 1u);                  // 1.5 + 2 + 0 against 0 + 2 + 1.6
  desk.look(1, 0, 0, 0.3);
  EXPECT_EQ(desk.slot(half), 0u);                  // against 1.4
}

TEST(LlmdBlend, ColdRequestsGoToWhoHadNoneForLongest) {
  Desk desk(llmd_blend());
  for (const Slot slot : desk.all) desk.look(slot, 0, 0, 0.1);
  std::vector<Slot> turns;
  for (std::uint64_t i = 0; i < 6; ++i) turns.push_back(desk.send(prompt({{100 + i, 512}})).slot);
  EXPECT_EQ(turns, (std::vector<Slot>{0, 1, 2, 0, 1, 2}));
  // A warm one does not count as a turn.
  desk.send(prompt({{100, 512}, {7, 16}}));
  EXPECT_EQ(desk.send(prompt({{200, 512}})).slot, 0u);
}

TEST(LlmdBlend, WithoutMetricsAPodHasPrefixAndLruAlone) {
  Desk desk(llmd_blend(), 2);
  // Cold: 2 · 1 for slot 0, without metrics; for slot 1: 2 · 0 + 2 · 1 (alone in its range) + 0.
  desk.look(1, 9, 9, 0.9);
  EXPECT_EQ(desk.slot(prompt({{1, 512}})), 1u);  // 2.2 against 2
}

TEST(LlmdSticky, KeepsToPodsWithFourFifths) {
  Desk desk(llmd_sticky());
  desk.send_to(1, prompt({{1, 800}}));
  desk.fleet[1].prefill_tokens = 10'000;
  EXPECT_EQ(desk.slot(prompt({{1, 800}, {2, 200}})), 1u);   // 800 of 992 in whole blocks: 0.806
  EXPECT_NE(desk.slot(prompt({{1, 800}, {2, 210}})), 1u);   // 800 of 1,008: 0.794
}

// 8,192 tokens take 8.192 s here: 1,000 tokens/s, so 18 s are 18,000 tokens.
TEST(LlmdSticky, BreaksWhenTheWarmLeadIsBeyondEighteenSeconds) {
  Desk desk(llmd_sticky());
  const auto pieces = prompt({{1, 512}});
  desk.send_to(1, pieces);
  desk.fleet[0].prefill_tokens = 5'000;
  desk.fleet[2].prefill_tokens = 4'000;
  desk.fleet[1].prefill_tokens = 22'000;
  EXPECT_EQ(desk.slot(pieces), 1u);
  desk.fleet[1].prefill_tokens = 22'001;
  EXPECT_EQ(desk.slot(pieces), 2u);
}

TEST(LlmdSticky, AmongThoseKeptTheLeastUncachedTokens) {
  Desk desk(llmd_sticky());
  desk.send_to(0, prompt({{1, 512}}));
  desk.send_to(1, prompt({{1, 512}, {2, 32}}));
  const auto pieces = prompt({{1, 512}, {2, 32}});  // both stick: 512 and 544 of 544
  desk.fleet[0].prefill_tokens = 100;               // 132
  desk.fleet[1].prefill_tokens = 131;               // 131
  EXPECT_EQ(desk.slot(pieces), 1u);
  desk.fleet[1].prefill_tokens = 133;
  EXPECT_EQ(desk.slot(pieces), 0u);
}

TEST(LlmdSticky, TheIndexIsAsLargeAsThePodsCache) {
  Desk desk(llmd_sticky(), 2);
  desk.look(1, 0, 0, 0, 1'024);
  desk.send_to(1, prompt({{1, 512}}));
  desk.send_to(1, prompt({{2, 512}}));
  EXPECT_EQ(desk.choose_among({1}, prompt({{1, 512}})).cached, 512);
  desk.send_to(1, prompt({{3, 512}}));
  EXPECT_EQ(desk.choose_among({1}, prompt({{1, 512}})).cached, 0);
  EXPECT_EQ(desk.choose_among({1}, prompt({{2, 512}})).cached, 512);
}

TEST(Llmd, LooksEveryFiftyMilliseconds) {
  EXPECT_EQ(llmd_sticky()->traits().look_every, 50ms);
  EXPECT_EQ(llmd_blend()->traits().look_every, 50ms);
  EXPECT_EQ(llmd_blend()->traits().retry.most, 0);
}

}  // namespace
}  // namespace signalbox::peers
