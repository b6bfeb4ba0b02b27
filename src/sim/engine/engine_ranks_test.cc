// SPDX-License-Identifier: Apache-2.0
// Goal: data-parallel ranks start their passes together, and a pass lasts as long as its fullest
// rank. Method: runs worked by hand on formula tables without noise; laws over random batches.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "sim/engine/engine_for_test.inc"

namespace signalbox::truth {
namespace {

// A prefill takes 60 + 0.1·tokens ms, a decode step 20 + 0.5·batch ms.
EngineSpec gated(int ranks) {
  EngineSpec spec;
  spec.table = StepTable::formula(60, 0.1, 0, 20, 0.5, 0);
  spec.ranks = ranks;
  spec.distortion = spec.noise = 0;
  spec.host_step_us = spec.host_sequence_us = spec.host_admission_us = 0;
  return spec;
}

double ms_since_start(Instant at) { return to_seconds(at - kStart) * 1e3; }

Instant first_token(const std::vector<Output>& out, SequenceId id) {
  for (const Output& o : out) {
    if (o.id == id && o.first) return o.at;
  }
  return kNever;
}

TEST(Ranks, APassLastsAsLongAsTheFullest) {
  Engine engine = make(gated(4));
  engine.submit({1, 4096, 1, {}}, kStart, 0);
  engine.submit({2, 100, 1, {}}, kStart, 1);
  const auto out = run(engine);
  EXPECT_NEAR(ms_since_start(first_token(out, 1)), 60 + 409.6, 0.01);
  EXPECT_EQ(first_token(out, 2), first_token(out, 1));
  EXPECT_EQ(engine.counters().steps, 1);
}

TEST(Ranks, WhoArrivesDuringAPassWaitsForItsEndThoughHisRankIsIdle) {
  Engine engine = make(gated(4));
  engine.submit({1, 4096, 1, {}}, kStart, 0);
  std::vector<Output> out;
  engine.advance(kStart + 1ms, out);
  engine.submit({2, 100, 1, {}}, kStart + 1ms, 3);
  const auto rest = run(engine);
  EXPECT_NEAR(ms_since_start(first_token(rest, 2)), 60 + 409.6 + 60 + 10, 0.01);
}

TEST(Ranks, WhatExpertsDoIsCarriedByAllEvenly) {
  EngineSpec spec = gated(4);
  spec.experts_share = 0.5;
  Engine engine = make(spec);
  engine.submit({1, 4096, 1, {}}, kStart, 0);
  EXPECT_NEAR(ms_since_start(first_token(run(engine), 1)), 60 + 409.6 / 2 + 409.6 / 2 / 4, 0.01);
}

TEST(Ranks, HaveMemoryAndSeatsOfTheirOwn) {
  EngineSpec spec = gated(2);
  spec.sequences_max = 1;
  Engine engine = make(spec);
  for (SequenceId id = 1; id <= 3; ++id) engine.submit({id, 160, 50, {}}, kStart, id == 3 ? 1 : 0);
  std::vector<Output> out;
  engine.advance(kStart, out);
  EXPECT_EQ(engine.gauges(0).running, 1);
  EXPECT_EQ(engine.gauges(0).waiting, 1);
  EXPECT_EQ(engine.gauges(1).running, 1);
  EXPECT_EQ(engine.gauges().running, 2);
  EXPECT_EQ(engine.gauges().kv_blocks, 2 * engine.gauges(0).kv_blocks);
  run(engine);
  EXPECT_EQ(engine.counters(0).finished, 2);
  EXPECT_EQ(engine.counters().finished, 3);
}

TEST(Ranks, ThePrefixOfOneIsUnknownToTheOthers) {
  Engine engine = make(gated(2));
  std::vector<std::uint64_t> hashes;
  for (std::uint64_t i = 1; i <= 10; ++i) hashes.push_back(i);
  engine.submit({1, 160, 1, hashes}, kStart, 0);
  run(engine);
  engine.submit({2, 160, 1, hashes}, kStart + 1s, 1);
  EXPECT_EQ(run(engine).back().cached_tokens, 0);
  engine.submit({3, 160, 1, hashes}, kStart + 2s, 0);
  EXPECT_EQ(run(engine).back().cached_tokens, 144);
}

TEST(Ranks, TheEnginesOwnBalanceTakesTheLeastFourTimesWaitingPlusRunning) {
  Engine engine = make(gated(3));
  std::vector<int> ranks;
  for (SequenceId id = 1; id <= 7; ++id) {
    ranks.push_back(engine.submit({id, 10, 100, {}}, kStart).rank);
  }
  EXPECT_EQ(ranks, (std::vector<int>{0, 1, 2, 0, 1, 2, 0}));
  std::vector<Output> out;
  engine.advance(kStart, out);  // all run now: 3, 2, 2
  EXPECT_EQ(engine.submit({8, 10, 100, {}}, kStart).rank, 1);
  EXPECT_EQ(engine.submit({9, 10, 100, {}}, kStart).rank, 2);  // 3 against 2 + 4 and 2
}

struct Item {
  int gap_ms;
  int prompt;
  int output;
  int rank;
};

rc::Gen<Item> item() {
  return rc::gen::build<Item>(rc::gen::set(&Item::gap_ms, rc::gen::inRange(0, 200)),
                              rc::gen::set(&Item::prompt, rc::gen::inRange(1, 3000)),
                              rc::gen::set(&Item::output, rc::gen::inRange(1, 12)),
                              rc::gen::set(&Item::rank, rc::gen::inRange(0, 4)));
}

// Gaps between the times at which something happens, by pass: every one is the greatest of what
// the ranks' parts would take alone.
RC_GTEST_PROP(RankLaws, AGatedPassIsAsLongAsItsFullestRank, ()) {
  const auto prompts = *rc::gen::nonEmpty(rc::gen::container<std::vector<int>>(
      rc::gen::inRange(1, 5000)));
  Engine engine = make(gated(4));
  std::vector<double> tokens(4);
  SequenceId id = 0;
  for (const int prompt : prompts) {
    const std::size_t rank = id % 4;
    if (tokens[rank] + prompt > 8192) continue;
    tokens[rank] += prompt;
    engine.submit({++id, prompt, 1, {}}, kStart, static_cast<int>(rank));
  }
  if (id == 0) return;
  const StepTable table = gated(4).table;
  double fullest = 0;
  for (const double t : tokens) {
    if (t > 0) fullest = std::max(fullest, table.prefill_ms(t, -t / 2 + t / 2));
  }
  const auto out = run(engine);
  RC_ASSERT(engine.counters().steps == 1);
  RC_ASSERT(std::abs(ms_since_start(out.back().at) - fullest) < 0.01);
}

RC_GTEST_PROP(RankLaws, IdleRanksChangeNothing, ()) {
  const auto items = *rc::gen::container<std::vector<Item>>(item());
  EngineSpec noisy = gated(1);
  noisy.noise = 0.05;
  noisy.distortion = 0.3;
  EngineSpec wide = noisy;
  wide.ranks = 5;
  Engine one(noisy, Rng(3, "e"));
  Engine many(wide, Rng(3, "e"));
  std::vector<Output> a, b;
  Instant now = kStart;
  SequenceId id = 0;
  for (const Item& i : items) {
    now += std::chrono::milliseconds(i.gap_ms);
    one.advance(now, a);
    many.advance(now, b);
    one.submit({++id, i.prompt, i.output, {}}, now);
    many.submit({id, i.prompt, i.output, {}}, now, 2);
  }
  one.advance(now + 10000s, a);
  many.advance(now + 10000s, b);
  RC_ASSERT(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    RC_ASSERT(a[i].id == b[i].id);
    RC_ASSERT(a[i].at == b[i].at);
  }
}

RC_GTEST_PROP(RankLaws, EverySequenceGetsAllItsTokensOnce, ()) {
  const auto items = *rc::gen::container<std::vector<Item>>(item());
  EngineSpec spec = gated(4);
  spec.kv_tokens = 16 * 220;
  Engine engine = make(spec);
  std::vector<Output> out;
  Instant now = kStart;
  std::int64_t wanted = 0;
  SequenceId id = 0;
  for (const Item& i : items) {
    now += std::chrono::milliseconds(i.gap_ms);
    engine.advance(now, out);
    engine.submit({++id, i.prompt, i.output, {}}, now, i.rank % 2 == 0 ? i.rank : -1);
    wanted += i.output;
  }
  engine.advance(now + 10000s, out);
  RC_ASSERT(engine.counters().generated_tokens == wanted);
  RC_ASSERT(engine.counters().finished == static_cast<std::int64_t>(items.size()));
  RC_ASSERT(engine.gauges().kv_blocks_used == 0);
}

}  // namespace
}  // namespace signalbox::truth
