// SPDX-License-Identifier: Apache-2.0
// Goal: prefill and decode by two engines, speculative decoding, adapters and the KV tier in host
// memory do what such engines do. Method: runs worked by hand on formula tables without noise, and
// laws of conservation.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "sim/engine/engine_for_test.inc"
#include "sim/engine/start.h"

namespace signalbox::truth {
namespace {

double ms(Duration d) { return to_seconds(d) * 1e3; }

TEST(Handover, APrefillEndsWithItsPromptAndKeepsItsBlocksUntilTheyAreReleased) {
  Engine engine = make(plain());
  engine.submit({1, 512, 0, {}}, kStart);
  const auto out = run(engine);
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[1].kind, Output::Kind::Prefilled);
  EXPECT_NEAR(ms(out[1].at - kStart), 61.2, 1e-3);
  EXPECT_EQ(engine.counters().prompt_tokens, 512);
  EXPECT_EQ(engine.counters().generated_tokens, 0);
  EXPECT_EQ(engine.gauges().running, 0);
  EXPECT_EQ(engine.gauges().kv_blocks_used, 32);
  engine.release(1, out[1].at + 1ms);
  EXPECT_EQ(engine.gauges().kv_blocks_used, 0);
}

TEST(Handover, WhoFindsNoRoomBesideKeptBlocksWaitsForTheirRelease) {
  EngineSpec spec = plain();
  spec.kv_tokens = 640;
  Engine engine = make(spec);
  engine.submit({1, 512, 0, {}}, kStart);
  engine.submit({2, 512, 0, {}}, kStart);
  run(engine);
  EXPECT_EQ(engine.gauges().waiting, 1);
  EXPECT_EQ(engine.next_event(), kNever);
  engine.release(1, kStart + 1s);
  EXPECT_EQ(engine.next_event(), kStart + 1s);
  EXPECT_NEAR(ms(run(engine).back().at - kStart), 1000 + 61.2, 1e-3);
}

TEST(Handover, WhatWasReceivedIsDecodedAtOnceAndCountedOnce) {
  Engine engine = make(plain());
  SequenceSpec sequence{1, 512, 3, {}};
  sequence.received_tokens = 511;
  engine.submit(sequence, kStart);
  const auto out = run(engine);
  ASSERT_EQ(out.size(), 4u);
  EXPECT_TRUE(out[1].first);
  EXPECT_NEAR(ms(out[1].at - kStart), 8.5, 1e-3);
  EXPECT_NEAR(ms(out[3].at - kStart), 3 * 8.5, 1e-3);
  EXPECT_EQ(engine.counters().prompt_tokens, 0);
  EXPECT_EQ(engine.counters().generated_tokens, 3);
  EXPECT_EQ(engine.counters().computed_tokens, 0);
  EXPECT_EQ(engine.gauges().kv_blocks_used, 0);
}

TEST(Handover, WhoIsPreemptedWhereHeDecodesIsComputedThereAnew) {
  EngineSpec spec = plain();
  spec.kv_tokens = 16 * 10;
  Engine engine = make(spec);
  for (SequenceId id = 1; id <= 2; ++id) {
    SequenceSpec sequence{id, 64, 60, {}};
    sequence.received_tokens = 63;
    engine.submit(sequence, kStart);
  }
  run(engine);
  EXPECT_GT(engine.counters().preemptions, 0);
  EXPECT_GT(engine.counters().computed_tokens, 63);
  EXPECT_EQ(engine.counters().generated_tokens, 120);
}

TEST(Speculation, EveryProposalAcceptedGivesAsManyTokensMoreAStep) {
  EngineSpec spec = plain();
  spec.draft_tokens = 3;
  spec.acceptance = 1;
  spec.draft_ms = 1;
  Engine engine = make(spec);
  engine.submit({1, 16, 9, {}}, kStart);
  const auto out = run(engine);
  // One token of the prefill, then two steps of four: of the draft 3 ms, and four are verified.
  EXPECT_EQ(engine.counters().steps, 3);
  EXPECT_NEAR(ms(out.back().at - kStart), 11.6 + 2 * (8 + 3 + 4 * 0.5), 1e-3);
  EXPECT_EQ(engine.counters().generated_tokens, 9);
}

TEST(Speculation, NoneAcceptedCostsTimeAndGivesNothing) {
  EngineSpec spec = plain();
  spec.draft_tokens = 3;
  spec.acceptance = 0;
  Engine engine = make(spec);
  engine.submit({1, 16, 9, {}}, kStart);
  run(engine);
  EXPECT_EQ(engine.counters().steps, 9);
  EXPECT_EQ(engine.counters().accepted_tokens, 0);
}

// Of k proposed tokens a + a² + … + aᵏ are accepted on the mean.
TEST(Speculation, AcceptsWhatItsChanceSays) {
  EngineSpec spec = plain();
  spec.draft_tokens = 4;
  spec.acceptance = 0.7;
  Engine engine = make(spec);
  engine.submit({1, 16, 12'000, {}}, kStart);
  run(engine);
  const double a = 0.7;
  const double expected = a + a * a + a * a * a + a * a * a * a;
  const auto steps = static_cast<double>(engine.counters().steps);
  EXPECT_NEAR(static_cast<double>(engine.counters().accepted_tokens) / steps, expected, 0.05);
}

TEST(Adapters, AreLoadedOnceAndMakeTheirStepLonger) {
  EngineSpec spec = plain();
  spec.lora_slots = 1;
  spec.lora_load_ms = 30;
  Engine engine = make(spec);
  SequenceSpec sequence{1, 100, 1, {}};
  sequence.lora = 7;
  engine.submit(sequence, kStart);
  EXPECT_NEAR(ms(run(engine).back().at - kStart), 20 + 30, 1e-3);
  sequence.id = 2;
  engine.submit(sequence, kStart + 1s);
  EXPECT_NEAR(ms(run(engine).back().at - kStart), 1000 + 20, 1e-3);
  EXPECT_EQ(engine.counters().lora_loads, 1);
}

TEST(Adapters, WhoseSlotIsTakenWaitsAndOthersPass) {
  EngineSpec spec = plain();
  spec.lora_slots = 1;
  Engine engine = make(spec);
  const std::uint64_t loras[] = {7, 8, 7, 0};
  for (SequenceId id = 1; id <= 4; ++id) {
    SequenceSpec sequence{id, 16, 5, {}};
    sequence.lora = loras[id - 1];
    engine.submit(sequence, kStart);
  }
  std::vector<SequenceId> admitted;
  for (const Output& o : run(engine)) {
    if (o.kind == Output::Kind::Admitted) admitted.push_back(o.id);
  }
  EXPECT_EQ(admitted, (std::vector<SequenceId>{1, 3, 4, 2}));
  EXPECT_EQ(engine.counters().lora_loads, 2);
}

TEST(HostMemory, BringsBackWhatWasEvicted) {
  EngineSpec spec = plain();
  spec.kv_tokens = 16 * 15;
  spec.host_kv_tokens = 16 * 100;
  spec.host_token_us = 10;
  Engine engine = make(spec);
  InTurn cached{engine};
  EXPECT_EQ(cached(1, 1), 0);
  EXPECT_EQ(cached(2, 2), 0);  // evicts a part of 1
  const Instant before = cached.now;
  EXPECT_EQ(cached(3, 1), 160);
  EXPECT_GT(engine.counters().host_tokens, 0);
  EXPECT_EQ(engine.counters().host_tokens % 16, 0);
  const double loads = static_cast<double>(engine.counters().host_tokens) * 10e-3;
  EXPECT_NEAR(ms(cached.now - 1ms - before), 10.1 + loads, 1e-3);
}

RC_GTEST_PROP(HostMemory, NeverMakesLessKnown, ()) {
  const auto names = *rc::gen::container<std::vector<int>>(rc::gen::inRange(1, 5));
  EngineSpec spec = plain();
  spec.kv_tokens = 16 * 15;
  Engine without = make(spec);
  spec.host_kv_tokens = 16 * 100;
  Engine with = make(spec);
  Instant now = kStart;
  SequenceId id = 0;
  for (const int name : names) {
    ++id;
    std::int64_t cached[2];
    int side = 0;
    for (Engine* engine : {&without, &with}) {
      engine->submit({id, 161, 1, chain(static_cast<std::uint64_t>(name), 10)}, now);
      cached[side++] = run(*engine).back().cached_tokens;
    }
    RC_ASSERT(cached[1] >= cached[0]);
    now += 10s;
  }
}

struct Item {
  int prompt;
  int output;
  int lora;
  bool received;
};

rc::Gen<Item> item() {
  return rc::gen::build<Item>(rc::gen::set(&Item::prompt, rc::gen::inRange(2, 300)),
                              rc::gen::set(&Item::output, rc::gen::inRange(0, 40)),
                              rc::gen::set(&Item::lora, rc::gen::inRange(0, 4)),
                              rc::gen::set(&Item::received, rc::gen::arbitrary<bool>()));
}

// Whatever an engine has of all this: every token once, every block back.
RC_GTEST_PROP(Features, ConserveTokensAndBlocks, ()) {
  const auto items = *rc::gen::container<std::vector<Item>>(item());
  EngineSpec spec = plain();
  spec.kv_tokens = 16 * 60;
  spec.noise = 0.05;
  spec.ranks = *rc::gen::element(1, 2);
  spec.draft_tokens = *rc::gen::element(0, 3);
  spec.lora_slots = *rc::gen::element(0, 1, 2);
  spec.host_kv_tokens = *rc::gen::element<std::int64_t>(0, 16 * 30);
  Engine engine = make(spec);
  Instant now = kStart;
  std::int64_t tokens = 0;
  std::int64_t prompts = 0;
  SequenceId id = 0;
  std::vector<Output> out;
  const auto advance_to = [&](Instant until) {
    while (engine.next_event() <= until) {
      std::vector<Output> told;
      engine.advance(engine.next_event(), told);
      for (const Output& o : told) {
        if (o.kind == Output::Kind::Prefilled) engine.release(o.id, o.at);
        out.push_back(o);
      }
    }
  };
  for (const Item& i : items) {
    now += 20ms;
    advance_to(now);
    SequenceSpec sequence{++id, i.prompt, i.output, {}};
    sequence.block_hashes = chain(static_cast<std::uint64_t>(i.lora), (i.prompt + i.output) / 16);
    sequence.lora = static_cast<std::uint64_t>(i.lora);
    const bool received = i.received && i.output > 0;
    if (received) sequence.received_tokens = i.prompt - 1;
    else prompts += i.prompt;
    tokens += i.output;
    engine.submit(sequence, now);
  }
  advance_to(now + 100000s);
  RC_ASSERT(engine.counters().generated_tokens == tokens);
  RC_ASSERT(engine.counters().prompt_tokens == prompts);
  RC_ASSERT(engine.counters().finished == static_cast<std::int64_t>(items.size()));
  RC_ASSERT(engine.gauges().kv_blocks_used == 0);
  RC_ASSERT(engine.next_event() == kNever);
}

TEST(Start, GoesThroughItsStagesOneAfterTheOther) {
  StartTimes means;
  means.provision = 100s;
  means.pull = 200s;
  means.load = 30s;
  means.compile = 50s;
  means.spread = 0;
  Rng rng(1, "start");
  const StageTimes anew = draw_start(means, StartFrom::Nothing, rng);
  EXPECT_EQ(total(anew), 380s);
  EXPECT_EQ(stage_at(anew, 99s), Stage::Provision);
  EXPECT_EQ(stage_at(anew, 299s), Stage::Pull);
  EXPECT_EQ(stage_at(anew, 329s), Stage::Load);
  EXPECT_EQ(stage_at(anew, 379s), Stage::Compile);
  EXPECT_EQ(total(draw_start(means, StartFrom::Node, rng)), 40s);
}

TEST(Start, WithoutTimesIsAtOnceAndWithThemNearTheirMean) {
  Rng rng(2, "start");
  EXPECT_EQ(total(draw_start(StartTimes{}, StartFrom::Nothing, rng)), Duration::zero());
  StartTimes means;
  means.pull = 100s;
  double sum = 0;
  for (int i = 0; i < 2000; ++i) {
    sum += to_seconds(total(draw_start(means, StartFrom::Nothing, rng)));
  }
  EXPECT_NEAR(sum / 2000, 100, 2);
}

}  // namespace
}  // namespace signalbox::truth
