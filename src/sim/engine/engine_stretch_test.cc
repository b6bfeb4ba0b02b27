// SPDX-License-Identifier: Apache-2.0
// Goal: an engine that tells less, and runs through passes in which nothing is told, is the engine
// that goes pass by pass. Method: both get the same random traffic and faults; what they tell,
// count and hold is equal to the bit.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>

#include "sim/engine/engine.h"

namespace signalbox::truth {
namespace {

using namespace std::chrono_literals;

constexpr Instant kStart = Instant(1s);

struct Item {
  int gap_us;
  int prompt;
  int output;
  int family;
  int told;   // a token that is told
  int what;   // what else happens
};

rc::Gen<Item> item() {
  return rc::gen::build<Item>(
      rc::gen::set(&Item::gap_us, rc::gen::inRange(0, 400'000)),
      rc::gen::set(&Item::prompt, rc::gen::inRange(1, 300)),
      rc::gen::set(&Item::output, rc::gen::inRange(1, 120)),
      rc::gen::set(&Item::family, rc::gen::inRange(0, 3)),
      rc::gen::set(&Item::told, rc::gen::inRange(0, 40)),
      rc::gen::set(&Item::what, rc::gen::inRange(0, 12)));
}

EngineSpec random_spec() {
  EngineSpec spec;
  spec.kv_tokens = *rc::gen::element<std::int64_t>(16 * 40, 16 * 400);
  spec.block_tokens = *rc::gen::element<std::int64_t>(4, 16);
  spec.sequences_max = *rc::gen::element<std::int64_t>(3, 64);
  spec.step_tokens_max = 256;
  spec.ranks = *rc::gen::element(1, 1, 3);
  return spec;
}

SequenceSpec sequence(SequenceId id, const Item& item, std::int64_t block_tokens) {
  SequenceSpec spec{id, item.prompt, item.output, {}, item.told};
  for (std::int64_t i = 1; i * block_tokens <= item.prompt + item.output; ++i) {
    spec.block_hashes.push_back(static_cast<std::uint64_t>(item.family * 1'000'003 + i));
  }
  return spec;
}

// One engine and what it has told.
struct Side {
  Engine engine;
  std::vector<Output> out;
  std::map<SequenceId, Engine::Place> here;

  void advance(Instant now) {
    std::vector<Output> told;
    while (engine.next_event() <= now) engine.advance(engine.next_event(), told);
    engine.advance(now, told);
    for (const Output& o : told) {
      out.push_back(o);
      if (o.last) here.erase(o.id);
    }
  }
};

void expect_equal(const Counters& a, const Counters& b) {
  RC_ASSERT(a.prompt_tokens == b.prompt_tokens);
  RC_ASSERT(a.cached_tokens == b.cached_tokens);
  RC_ASSERT(a.computed_tokens == b.computed_tokens);
  RC_ASSERT(a.generated_tokens == b.generated_tokens);
  RC_ASSERT(a.preemptions == b.preemptions);
  RC_ASSERT(a.finished == b.finished);
  RC_ASSERT(a.steps == b.steps);
  RC_ASSERT(a.busy_seconds == b.busy_seconds);
  RC_ASSERT(a.step_tokens.sum == b.step_tokens.sum);
  RC_ASSERT(a.step_tokens.count == b.step_tokens.count);
}

void expect_equal_state(Side& by_pass, Side& by_stretch) {
  for (int rank = -1; rank < by_pass.engine.ranks(); ++rank) {
    RC_ASSERT(by_pass.engine.gauges(rank).kv_blocks_used ==
              by_stretch.engine.gauges(rank).kv_blocks_used);
    RC_ASSERT(by_pass.engine.gauges(rank).running == by_stretch.engine.gauges(rank).running);
    RC_ASSERT(by_pass.engine.gauges(rank).waiting == by_stretch.engine.gauges(rank).waiting);
    expect_equal(by_pass.engine.counters(rank), by_stretch.engine.counters(rank));
  }
  RC_ASSERT(by_pass.engine.cached_blocks() == by_stretch.engine.cached_blocks());
  RC_ASSERT(by_pass.here.size() == by_stretch.here.size());
  for (const auto& [id, place] : by_pass.here) {
    const Rank::Progress a = by_pass.engine.progress(place);
    const Rank::Progress b = by_stretch.engine.progress(by_stretch.here.at(id));
    RC_ASSERT(a.tokens == b.tokens);
    RC_ASSERT(a.latest == b.latest);
  }
}

void expect_told_alike(const Side& by_pass, const Side& by_stretch,
                       const std::vector<Item>& items) {
  std::vector<Output> expected;
  for (const Output& o : by_pass.out) {
    if (o.kind == Output::Kind::Admitted || o.first || o.last ||
        o.token == items[o.id - 1].told) {
      expected.push_back(o);
    }
  }
  RC_ASSERT(expected.size() == by_stretch.out.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    RC_ASSERT(expected[i].id == by_stretch.out[i].id);
    RC_ASSERT(expected[i].kind == by_stretch.out[i].kind);
    RC_ASSERT(expected[i].token == by_stretch.out[i].token);
    RC_ASSERT(expected[i].cached_tokens == by_stretch.out[i].cached_tokens);
    RC_ASSERT(expected[i].at == by_stretch.out[i].at);
  }
}

RC_GTEST_PROP(Stretches, AreEqualToPassesOneByOne, ()) {
  const EngineSpec spec = random_spec();
  const auto items = *rc::gen::container<std::vector<Item>>(item());
  Side by_pass{Engine(spec, Rng(5, "e")), {}, {}};
  Side by_stretch{Engine(spec, Rng(5, "e")), {}, {}};
  by_stretch.engine.tell_less();
  Instant now = kStart;
  SequenceId id = 0;
  for (const Item& i : items) {
    now += std::chrono::microseconds(i.gap_us);
    ++id;
    for (Side* side : {&by_pass, &by_stretch}) {
      side->advance(now);
      side->here[id] = side->engine.submit(sequence(id, i, spec.block_tokens), now);
      if (i.what == 1 && id > 2 && side->engine.abort(id - 2, now)) side->here.erase(id - 2);
      if (i.what == 2) side->engine.slow(i.told % 2 == 0 ? 1 : 1.7);
      if (i.what == 3) side->engine.stall_until(now + 50ms);
      if (i.what == 4) side->engine.drop_cache();
      std::vector<SequenceId> lost;
      if (i.what == 5 && i.told == 7) side->engine.restart(lost);
      for (const SequenceId gone : lost) side->here.erase(gone);
    }
    expect_equal_state(by_pass, by_stretch);
    now += std::chrono::microseconds(i.gap_us / 3);
    by_pass.advance(now);
    by_stretch.advance(now);
    expect_equal_state(by_pass, by_stretch);
  }
  by_pass.advance(now + 100000s);
  by_stretch.advance(now + 100000s);
  expect_equal_state(by_pass, by_stretch);
  expect_told_alike(by_pass, by_stretch, items);
}

TEST(Stretches, AreRunThroughAtOnce) {
  EngineSpec spec;
  Engine engine(spec, Rng(1, "e"));
  engine.tell_less();
  engine.submit({1, 100, 1000, {}}, kStart);
  std::vector<Output> out;
  int wakes = 0;
  for (; engine.next_event() != kNever; ++wakes) engine.advance(engine.next_event(), out);
  EXPECT_LT(wakes, 30);
  EXPECT_EQ(out.size(), 3u);
  EXPECT_EQ(engine.counters().steps, 1000);
  EXPECT_EQ(engine.counters().generated_tokens, 1000);
}

}  // namespace
}  // namespace signalbox::truth
