// SPDX-License-Identifier: Apache-2.0
// Goal: an explanation repeats the decision's scores, and its flip flips. Method: decisions on
// random fleets and made-up inputs; the stated change is applied to the recorded inputs.
#include "core/routing/explanation.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/routing/random_fleet.h"

namespace signalbox::routing {
namespace {

// The order after the flip: the runner-up leaves the chosen place behind by more than the band.
bool flipped(const Explanation& e) {
  const Inputs& chosen = e.candidates[e.chosen].inputs;
  const Inputs& other = e.candidates[*e.runner_up].inputs;
  const bool of_chosen = e.flip->endpoint == chosen.endpoint;
  const Inputs changed = with(of_chosen ? chosen : other, e.flip->field, e.flip->to);
  const Terms a = score(e.ask, of_chosen ? changed : chosen);
  const Terms b = score(e.ask, of_chosen ? other : changed);
  return ranks_before(b, a) && !nearly_tied(b, a, e.ask.tie_band);
}

RC_GTEST_PROP(Explanation, the_stated_change_flips_the_choice_on_random_fleets, ()) {
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  Rng rng(seed, "explain");
  FleetShape shape;
  shape.endpoints = 2 + static_cast<int>(rng.below(60));
  shape.load = rng.uniform(0, 10);
  RandomFleet fleet(shape, seed);
  fleet.warm();
  for (int i = 0; i < 20; ++i) {
    Query q = fleet.query();
    if (rng.chance(0.3)) q.ttft = from_seconds(rng.uniform(0.01, 2));
    const Decision d = decide(fleet.state(), q, fleet.now(), fleet.rng());
    if (d.kind != Decision::Kind::Place) continue;
    const Explanation e = explain(d);
    RC_ASSERT(e.candidates.size() == d.count);
    RC_ASSERT(e.candidates[e.chosen].inputs.endpoint == d.endpoint);
    for (std::size_t k = 1; k < e.candidates.size(); ++k) {
      RC_ASSERT(!ranks_before(e.candidates[k].terms, e.candidates[k - 1].terms));
    }
    RC_ASSERT(e.runner_up.has_value() == (d.count > 1));
    if (!e.runner_up) continue;
    RC_ASSERT(e.flip.has_value());
    RC_ASSERT(flipped(e));
    fleet.arrive();
  }
}

RC_GTEST_PROP(Explanation, the_stated_change_flips_the_order_of_any_two_places, ()) {
  Rng rng(*rc::gen::arbitrary<std::uint64_t>(), "inputs");
  Decision d;
  d.kind = Decision::Kind::Place;
  d.count = 2;
  d.ask.prompt = static_cast<float>(1 + rng.below(50'000));
  d.ask.output = static_cast<float>(1 + rng.below(2'000));
  d.ask.latency_weight = static_cast<float>(rng.uniform(0.1, 16));
  d.ask.shadow = static_cast<float>(rng.uniform(0, 10));
  d.ask.mean_b = 1e-4f;
  d.ask.tie_band = rng.chance(0.5) ? 0.02f : 0;
  for (std::uint32_t i = 0; i < 2; ++i) {
    Inputs& in = d.candidates[i];
    in.endpoint = model::EndpointId(i + 1);
    in.cached = static_cast<float>(rng.below(static_cast<std::uint64_t>(d.ask.prompt)));
    in.wait = rng.chance(0.5) ? 0 : static_cast<float>(rng.uniform(0, 10));
    in.in_flight = static_cast<float>(rng.below(60));
    in.arrivals = static_cast<float>(rng.uniform(0, 2));
    in.overlap = in.in_flight * 100;
    in.b = static_cast<float>(rng.uniform(1e-5, 1e-3));
    in.d = static_cast<float>(rng.uniform(5e-3, 5e-2));
    in.pass = in.d;
    in.pass_wait = in.d / 2;
    in.e1 = in.e2 = 1e-4f;
  }
  if (ranks_before(score(d.ask, d.candidates[1]), score(d.ask, d.candidates[0]))) {
    std::swap(d.candidates[0], d.candidates[1]);
  }
  d.endpoint = d.candidates[0].endpoint;
  const Explanation e = explain(d);
  RC_ASSERT(e.flip.has_value());
  RC_ASSERT(flipped(e));
}

// Two places alike but for what is told.
Decision two_places() {
  Decision d;
  d.kind = Decision::Kind::Place;
  d.count = 2;
  d.ask.prompt = 4000;
  d.ask.output = 10;
  for (std::uint32_t i = 0; i < 2; ++i) {
    d.candidates[i].endpoint = model::EndpointId(i + 1);
    d.candidates[i].b = 1e-3f;
    d.candidates[i].d = 0.01f;
    d.candidates[i].pass = 0.01f;
  }
  d.endpoint = model::EndpointId(1);
  return d;
}

std::string number(model::EndpointId id) { return "endpoint " + std::to_string(id.value()); }

TEST(Explanation, says_how_many_tokens_would_have_sufficed) {
  Decision d = two_places();
  d.candidates[0].cached = 1000;
  d.candidates[1].cached = 500;
  const Explanation e = explain(d);
  ASSERT_TRUE(e.flip);
  EXPECT_EQ(e.flip->field, Field::Cached);
  EXPECT_EQ(sentence(e, number), "endpoint 2 would have won with 501 fewer uncached tokens");
}

TEST(Explanation, says_how_much_less_queue_would_have_sufficed) {
  Decision d = two_places();
  d.ask.prompt = 100;  // too short for cached tokens to make up for a quarter of a second
  d.candidates[1].wait = 0.25f;
  const Explanation e = explain(d);
  ASSERT_TRUE(e.flip);
  // A queue alike makes a tie; the queue of the first has to be longer.
  EXPECT_EQ(e.flip->field, Field::Wait);
  EXPECT_EQ(sentence(e, number),
            "endpoint 2 would have won if endpoint 1 had 0.25 s more queued prefill");
}

TEST(Explanation, a_single_candidate_has_no_runner_up) {
  Decision d = two_places();
  d.count = 1;
  const Explanation e = explain(d);
  EXPECT_FALSE(e.runner_up);
  EXPECT_FALSE(e.flip);
  EXPECT_EQ(sentence(e, number), "no other endpoint could have served it");
}

TEST(Explanation, says_why_there_is_no_place) {
  Decision d;
  EXPECT_EQ(sentence(explain(d), number), "no endpoint could serve it");
  d.kind = Decision::Kind::Wait;
  EXPECT_EQ(sentence(explain(d), number), "it waits: every endpoint that could serve it is full");
  d = two_places();
  d.kind = Decision::Kind::None;
  d.retried = true;
  EXPECT_EQ(sentence(explain(d), number),
            "every endpoint that could serve it had failed it already");
  EXPECT_FALSE(explain(d).runner_up) << "nobody won, so nobody came second";
  EXPECT_FALSE(explain(d).flip);
}

TEST(Explanation, lists_only_the_reasons_that_occurred) {
  Decision d;
  d.refusals[static_cast<std::size_t>(Reason::Full)] = {3, model::EndpointId(2)};
  const Explanation e = explain(d);
  ASSERT_EQ(e.refused.size(), 1u);
  EXPECT_EQ(e.refused[0].reason, Reason::Full);
  EXPECT_EQ(e.refused[0].refusals.count, 3u);
}

}  // namespace
}  // namespace signalbox::routing
