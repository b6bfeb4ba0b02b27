// SPDX-License-Identifier: Apache-2.0
// Goal: the choice equals the exhaustive one. Method: random fleets under random load, compared
// with a plain loop over all endpoints by the public score.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <optional>

#include "core/routing/decide.h"
#include "core/routing/random_fleet.h"

namespace signalbox::routing {
namespace {

struct Best {
  model::EndpointId endpoint;
  Terms terms;
  int equals = 1;  // places with exactly this score
};

std::optional<Best> exhaustive(const State& state, const Query& q, Instant now, int endpoints) {
  std::optional<Best> best;
  const Ask ask = state.ask(q, now);
  for (int i = 1; i <= endpoints; ++i) {
    const model::EndpointId id(static_cast<std::uint32_t>(i));
    if (!state.contains(id) || !state.feasible(id, q)) continue;
    const Terms terms = score(ask, state.inputs(id, q, now));
    if (!best || ranks_before(terms, best->terms)) {
      best = Best{id, terms};
    } else if (!ranks_before(best->terms, terms)) {
      ++best->equals;
    }
  }
  return best;
}

// Compares one decision with the loop; fails the surrounding test with both scores.
void expect_exhaustive(RandomFleet& fleet, const Query& q) {
  State& state = fleet.state();
  const auto best = exhaustive(state, q, fleet.now(), fleet.shape().endpoints);
  const Decision d = decide(state, q, fleet.now(), fleet.rng());
  if (!best) {
    ASSERT_TRUE(d.kind != Decision::Kind::Place || d.retried || d.ejected);
    return;
  }
  ASSERT_EQ(d.kind, Decision::Kind::Place);
  ASSERT_FALSE(d.retried || d.ejected);
  const Terms found = score(d.ask, d.candidates[0]);
  ASSERT_EQ(found.total, best->terms.total)
      << "found endpoint " << d.candidates[0].endpoint.value() << ", best is "
      << best->endpoint.value() << " of " << fleet.shape().endpoints;
  ASSERT_EQ(found.violation, best->terms.violation);
  const Terms chosen = score(d.ask, d.candidates[d.chosen]);
  ASSERT_TRUE(nearly_tied(found, chosen, d.ask.tie_band));
  ASSERT_EQ(d.candidates[d.chosen].endpoint, d.endpoint);
  if (d.near_ties == 1 && best->equals == 1) {
    ASSERT_EQ(d.endpoint, best->endpoint);
  }
}

void draw_objectives(Query& q, Rng& rng) {
  if (rng.chance(0.3)) q.ttft = from_seconds(rng.uniform(0.05, 3));
  if (rng.chance(0.2)) q.tpot = from_seconds(rng.uniform(0.01, 0.06));
  if (rng.chance(0.2)) q.e2e = from_seconds(rng.uniform(0.5, 20));
}

FleetShape draw_shape(Rng& rng, int endpoints_max) {
  FleetShape shape;
  shape.endpoints = 1 + static_cast<int>(rng.below(static_cast<std::uint64_t>(endpoints_max)));
  shape.accelerators = 1 + static_cast<int>(rng.below(4));
  shape.speed_noise = rng.chance(0.3) ? 0 : rng.uniform(0, 0.5);
  shape.stragglers = rng.chance(0.5) ? 0 : 0.05;
  shape.stale = rng.uniform(0, 0.5);
  shape.others = rng.chance(0.3) ? 0 : rng.uniform();
  shape.unavailable = rng.chance(0.5) ? 0 : rng.uniform(0, 0.5);
  shape.loras = rng.chance(0.5) ? 0 : rng.uniform();
  shape.uneven_limits = rng.chance(0.5);
  shape.small_kv = rng.chance(0.5) ? 0 : rng.uniform();
  shape.load = rng.chance(0.2) ? 0 : rng.uniform(0, 20);
  shape.placed = rng.chance(0.7);
  shape.timed = rng.chance(0.5);
  return shape;
}

void run_law(std::uint64_t seed, int endpoints_max, int decisions) {
  Rng rng(seed, "law");
  Config config;
  config.tie_band = rng.chance(0.5) ? 0 : 0.02;
  config.near_ties_wanted = 1 + static_cast<int>(rng.below(16));
  RandomFleet fleet(draw_shape(rng, endpoints_max), seed, config);
  fleet.warm();
  for (int i = 0; i < decisions; ++i) {
    Query q = fleet.query();
    draw_objectives(q, rng);
    std::vector<model::EndpointId> tried;
    while (rng.chance(0.2)) tried.push_back(fleet.any());
    q.tried = tried;
    expect_exhaustive(fleet, q);
    if (testing::Test::HasFatalFailure()) return;
    fleet.arrive();
    if (fleet.live() > 0) fleet.advance(rng.below(fleet.live()));
    if (fleet.live() > 0 && rng.chance(0.9)) fleet.end(rng.below(fleet.live()));
    if (rng.chance(0.2)) fleet.look(fleet.any());
    if (rng.chance(0.1)) fleet.pass(from_seconds(rng.exponential(200)));
    if (rng.chance(0.05)) {
      fleet.state().set_availability(fleet.any(), static_cast<Availability>(rng.below(4)));
    }
  }
}

RC_GTEST_PROP(Decide, the_choice_equals_the_exhaustive_one_on_random_fleets, ()) {
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  run_law(seed, 300, 60);
  RC_ASSERT(!testing::Test::HasFatalFailure());
}

TEST(Decide, the_choice_equals_the_exhaustive_one_on_five_thousand_endpoints) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    FleetShape shape;
    shape.endpoints = 5000;
    shape.accelerators = static_cast<int>(seed);
    shape.load = static_cast<double>(seed);
    shape.timed = seed % 2 == 0;
    RandomFleet fleet(shape, seed);
    fleet.warm();
    for (int i = 0; i < 60; ++i) {
      expect_exhaustive(fleet, fleet.query());
      ASSERT_FALSE(HasFatalFailure()) << "seed " << seed << ", decision " << i;
      fleet.arrive();
    }
  }
}

// The costly case for a search by load: the holders are busy, everybody else is idle.
TEST(Decide, a_prefix_held_by_the_busy_half_of_the_fleet_is_weighed_exactly) {
  FleetShape shape;
  shape.endpoints = 5000;
  shape.accelerators = 1;
  shape.others = shape.unavailable = shape.loras = shape.small_kv = 0;
  shape.load = 0;
  RandomFleet fleet(shape, 3);
  std::vector<model::EndpointId> holders;
  std::uint64_t request = 0;
  for (std::uint32_t i = 1; i <= 5000; i += 2) {
    const model::EndpointId id(i);
    holders.push_back(id);
    const auto sent = 1 + fleet.rng().below(3);
    for (std::uint64_t k = 0; k < sent; ++k) {
      const RequestKey key{model::RequestId(++request), model::AttemptId(1)};
      const auto fresh = static_cast<std::int64_t>(2000 + fleet.rng().below(20000));
      fleet.state().dispatched(id, key, {fresh, 0, 300}, fleet.now());
    }
  }
  cache::Match match;
  match.prompt_tokens = 12000;
  match.levels = {{10000, holders}};
  Query q = fleet.query();
  q.lora = 0;
  q.prompt_tokens = 12000;
  q.match = &match;
  expect_exhaustive(fleet, q);
  const Decision d = decide(fleet.state(), q, fleet.now(), fleet.rng());
  EXPECT_LT(d.evaluated, 200u);
}

TEST(Decide, the_same_seed_gives_the_same_decisions) {
  const auto run = [] {
    FleetShape shape;
    shape.endpoints = 300;
    RandomFleet fleet(shape, 11);
    fleet.warm();
    std::vector<std::uint32_t> chosen;
    for (int i = 0; i < 300; ++i) {
      const Query q = fleet.query();
      chosen.push_back(decide(fleet.state(), q, fleet.now(), fleet.rng()).endpoint.value());
      fleet.arrive();
    }
    return chosen;
  };
  EXPECT_EQ(run(), run());
}

TEST(Decide, a_random_run_leaves_nothing_in_flight_behind) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Rng rng(seed, "shape");
    RandomFleet fleet(draw_shape(rng, 100), seed);
    fleet.warm();
    EXPECT_EQ(fleet.state().idle(), fleet.state().in_flight() == 0);
    if (seed % 2 == 0) {
      for (std::uint32_t i = 1; i <= 100; i += 2) fleet.state().remove(model::EndpointId(i));
    }
    fleet.end_all();
    EXPECT_TRUE(fleet.state().idle()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace signalbox::routing
