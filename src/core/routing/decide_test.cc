// SPDX-License-Identifier: Apache-2.0
// Goal: decisions in small fleets are the ones a person would expect, and hard limits hold. Method:
// two to four endpoints, set up by hand.
#include "core/routing/decide.h"

#include <gtest/gtest.h>

#include <set>

namespace signalbox::routing {
namespace {

using model::EndpointId;
using model::PoolId;

constexpr EndpointId kOne{1};
constexpr EndpointId kTwo{2};
constexpr EndpointId kThree{3};

Instant at(double seconds) { return Instant{from_seconds(seconds)}; }

EndpointFacts facts() {
  EndpointFacts f;
  f.pool = PoolId(1);
  f.model = model::ModelId(1);
  f.coefficients.b = 1e-4;
  f.coefficients.c = 1e-9;
  f.coefficients.d = 10e-3;
  f.coefficients.e1 = f.coefficients.e2 = 1e-4;
  f.coefficients.f = 1e-8;
  f.coefficients.kv_capacity_tokens = 100'000;
  f.concurrency_limit = 8;
  return f;
}

class DecideTest : public testing::Test {
 protected:
  DecideTest() {
    query_.model = model::ModelId(1);
    query_.pools = pools_;
    query_.prompt_tokens = 1000;
    query_.output_mean = 100;
    config_.tie_band = 0;
  }

  void make(int endpoints) {
    state_ = std::make_unique<State>(config_);
    for (int i = 1; i <= endpoints; ++i) {
      state_->add(EndpointId(static_cast<std::uint32_t>(i)), facts());
    }
  }
  void send(EndpointId id, const Work& work = {1000, 0, 100}, double seconds = 10) {
    const RequestKey key{model::RequestId(++requests_), model::AttemptId(1)};
    ASSERT_TRUE(state_->dispatched(id, key, work, at(seconds)));
  }
  void hold(std::int64_t tokens, std::vector<EndpointId> holders) {
    holders_ = std::move(holders);
    match_.prompt_tokens = query_.prompt_tokens;
    match_.levels = {{tokens, holders_}};
    query_.match = &match_;
  }
  Decision ask(double seconds = 10) { return decide(*state_, query_, at(seconds), rng_); }
  static Refusals refusals(const Decision& d, Reason reason) {
    return d.refusals[static_cast<std::size_t>(reason)];
  }

  Config config_;
  std::unique_ptr<State> state_;
  std::vector<PoolId> pools_{PoolId(1)};
  Query query_;
  cache::Match match_;
  std::vector<EndpointId> holders_;
  Rng rng_{1, "routing"};
  std::uint64_t requests_ = 0;
};

TEST_F(DecideTest, a_loaded_holder_of_a_long_prefix_beats_an_idle_stranger) {
  make(2);
  for (int i = 0; i < 4; ++i) send(kOne, {200, 0, 100});
  query_.prompt_tokens = 40'000;
  hold(39'000, {kOne});
  EXPECT_EQ(ask().endpoint, kOne);
}

TEST_F(DecideTest, an_idle_stranger_beats_the_holder_of_a_short_prefix_with_a_queue) {
  make(2);
  for (int i = 0; i < 4; ++i) send(kOne, {20'000, 0, 100});
  query_.prompt_tokens = 2'000;
  hold(1'500, {kOne});
  EXPECT_EQ(ask().endpoint, kTwo);
}

TEST_F(DecideTest, a_hot_prefix_is_replicated_when_waiting_costs_more_than_recomputing) {
  make(2);
  query_.prompt_tokens = 8'000;
  hold(7'500, {kOne});
  int stayed = 0;
  while (ask().endpoint == kOne && stayed < 100) {
    send(kOne, {500, 7'500, 100});
    state_->set_limit(kOne, 1000);
    ++stayed;
  }
  EXPECT_GT(stayed, 2);
  EXPECT_LT(stayed, 100);
}

TEST_F(DecideTest, the_deepest_holder_is_preferred_to_a_shallower_one) {
  make(3);
  query_.prompt_tokens = 10'000;
  const std::vector<EndpointId> deep{kThree};
  const std::vector<EndpointId> shallow{kTwo, kThree};
  match_.levels = {{9'000, deep}, {4'000, shallow}};
  query_.match = &match_;
  const Decision d = ask();
  EXPECT_EQ(d.endpoint, kThree);
  EXPECT_EQ(d.candidates[0].cached, 9'000);
  EXPECT_EQ(d.candidates[1].cached, 4'000);
}

TEST_F(DecideTest, time_lets_a_queue_drain) {
  make(2);
  send(kOne, {20'000, 0, 10});   // two seconds of prefill
  send(kTwo, {5'000, 0, 10});
  send(kTwo, {5'000, 0, 10});
  EXPECT_EQ(ask(10).endpoint, kTwo) << "one second of queue against two";
  EXPECT_EQ(ask(11.9).endpoint, kOne) << "the head of the first is nearly through";
}

TEST_F(DecideTest, others_load_counts) {
  make(2);
  model::EngineState engine;
  engine.running = 6;
  engine.waiting = 0;
  state_->observed(kOne, engine, at(9));
  EXPECT_EQ(ask().endpoint, kTwo);
}

TEST_F(DecideTest, a_stale_gauge_never_stops_dispatch) {
  make(1);
  model::EngineState engine;
  engine.running = 500;
  engine.waiting = 500;
  state_->observed(kOne, engine, at(9));
  EXPECT_EQ(ask(9000).kind, Decision::Kind::Place);
}

TEST_F(DecideTest, a_straggler_is_avoided_as_far_as_it_is_slow) {
  make(2);
  perf::Coefficients slow = facts().coefficients;
  slow.b *= 2;
  slow.d *= 2;
  state_->set_coefficients(kOne, slow, 0.1);
  EXPECT_EQ(ask().endpoint, kTwo);
  for (int i = 0; i < 7; ++i) send(kTwo, {10'000, 0, 100});
  EXPECT_EQ(ask().endpoint, kOne);
}

TEST_F(DecideTest, full_places_wait_and_the_queue_is_ours) {
  make(2);
  for (int i = 0; i < 8; ++i) {
    send(kOne);
    send(kTwo);
  }
  const Decision d = ask();
  EXPECT_EQ(d.kind, Decision::Kind::Wait);
  EXPECT_FALSE(d.endpoint);
  EXPECT_EQ(refusals(d, Reason::Full).count, 2u);
  EXPECT_TRUE(refusals(d, Reason::Full).example);
  state_->ended({model::RequestId(1), model::AttemptId(1)}, at(11));
  EXPECT_EQ(ask(11).endpoint, kOne);
}

TEST_F(DecideTest, a_request_that_fits_nowhere_does_not_wait_for_full_places) {
  make(2);
  for (int i = 0; i < 8; ++i) {
    send(kOne);
    send(kTwo);
  }
  query_.prompt_tokens = 200'000;
  EXPECT_EQ(ask().kind, Decision::Kind::None);
}

TEST_F(DecideTest, every_place_of_a_small_fleet_is_compared) {
  make(5);
  hold(950, {EndpointId(3)});
  const Decision d = ask();
  EXPECT_EQ(d.endpoint, EndpointId(3));
  EXPECT_EQ(d.count, 5);
}

TEST_F(DecideTest, a_clear_winner_of_a_large_fleet_is_compared_with_one_more) {
  make(500);
  hold(950, {EndpointId(3)});
  const Decision d = ask();
  EXPECT_EQ(d.endpoint, EndpointId(3));
  EXPECT_GE(d.count, 2);
  EXPECT_LT(d.evaluated, 20u);
}

TEST_F(DecideTest, each_reason_is_counted_with_an_example) {
  make(0);
  EndpointFacts f = facts();
  f.role = model::Role::Decode;
  state_->add(EndpointId(1), f);
  f = facts();
  f.tenants = {model::TenantId(5)};
  state_->add(EndpointId(2), f);
  f = facts();
  f.loras = {7};
  f.coefficients.kv_capacity_tokens = 500;
  state_->add(EndpointId(3), f);
  state_->add(EndpointId(4), facts());
  f = facts();
  f.loras = {7};
  for (std::uint32_t i = 5; i <= 9; ++i) state_->add(EndpointId(i), f);
  state_->set_availability(EndpointId(5), Availability::Draining);
  state_->set_availability(EndpointId(6), Availability::Asleep);
  state_->set_availability(EndpointId(7), Availability::Ejected);
  for (int i = 0; i < 8; ++i) send(EndpointId(8));
  EndpointFacts stranger = f;
  stranger.serves = false;
  state_->add(EndpointId(10), stranger);
  const std::vector<EndpointId> tried{EndpointId(9)};
  query_.tried = tried;
  query_.lora = 7;
  const Decision d = ask();
  EXPECT_EQ(d.kind, Decision::Kind::Wait);
  const std::pair<Reason, std::uint32_t> expected[] = {
      {Reason::Role, 1},   {Reason::Tenant, 2},   {Reason::Lora, 4},
      {Reason::Memory, 3}, {Reason::Draining, 5}, {Reason::Asleep, 6},
      {Reason::Ejected, 7}, {Reason::Full, 8},    {Reason::AlreadyTried, 9},
      {Reason::OtherModel, 10}};
  for (const auto& [reason, id] : expected) {
    EXPECT_EQ(refusals(d, reason).count, 1u) << label(reason);
    EXPECT_EQ(refusals(d, reason).example, EndpointId(id)) << label(reason);
  }
}

TEST_F(DecideTest, context_and_memory_told_by_the_engine_are_hard_limits) {
  make(2);
  model::EngineState engine;
  engine.context_tokens = 1050;
  state_->observed(kOne, engine, at(9));
  engine = {};
  engine.kv_capacity_tokens = 1050;
  state_->observed(kTwo, engine, at(9));
  EXPECT_EQ(ask().kind, Decision::Kind::None);
  query_.output_mean = 50;
  EXPECT_EQ(ask().kind, Decision::Kind::Place);
}

TEST_F(DecideTest, an_engine_that_says_it_sleeps_gets_nothing) {
  make(2);
  model::EngineState engine;
  engine.asleep = true;
  state_->observed(kOne, engine, at(9));
  EXPECT_EQ(ask().endpoint, kTwo);
  engine.asleep = false;
  state_->observed(kOne, engine, at(10));
  EXPECT_EQ(refusals(ask(), Reason::Asleep).count, 0u);
}

TEST_F(DecideTest, tried_places_are_avoided_until_nothing_else_is_left) {
  make(2);
  send(kTwo, {50'000, 0, 100});
  std::vector<EndpointId> tried{kOne};
  query_.tried = tried;
  Decision d = ask();
  EXPECT_EQ(d.endpoint, kTwo);
  EXPECT_FALSE(d.retried);
  tried = {kOne, kTwo};
  query_.tried = tried;
  d = ask();
  EXPECT_EQ(d.endpoint, kOne);
  EXPECT_TRUE(d.retried);
}

TEST_F(DecideTest, when_all_are_ejected_the_least_bad_serves_if_allowed) {
  make(2);
  send(kOne, {50'000, 0, 100});
  state_->set_availability(kOne, Availability::Ejected);
  state_->set_availability(kTwo, Availability::Ejected);
  EXPECT_EQ(ask().kind, Decision::Kind::None);
  query_.ejected_allowed = true;
  const Decision d = ask();
  EXPECT_EQ(d.endpoint, kTwo);
  EXPECT_TRUE(d.ejected);
  state_->set_availability(kOne, Availability::Open);
  EXPECT_EQ(ask().endpoint, kOne);
}

TEST_F(DecideTest, no_pool_is_no_place) {
  make(2);
  query_.pools = {};
  EXPECT_EQ(ask().kind, Decision::Kind::None);
  EXPECT_EQ(ask().count, 0);
}

TEST_F(DecideTest, an_objective_is_met_before_the_score_is_looked_at) {
  make(2);
  perf::Coefficients fast = facts().coefficients;
  fast.d /= 4;                      // twice as good for everything but the first token
  state_->set_coefficients(kOne, fast, 0);
  send(kOne, {4'000, 0, 1});
  query_.output_mean = 500;
  EXPECT_EQ(ask().endpoint, kOne);
  query_.ttft = from_seconds(0.3);
  const Decision d = ask();
  EXPECT_EQ(d.endpoint, kTwo);
  EXPECT_FALSE(d.objective_missed);
}

TEST_F(DecideTest, an_objective_that_nobody_meets_goes_to_the_least_violation_and_is_marked) {
  make(2);
  send(kOne);
  query_.ttft = from_seconds(0.001);
  const Decision d = ask();
  EXPECT_EQ(d.endpoint, kTwo);
  EXPECT_TRUE(d.objective_missed);
}

TEST_F(DecideTest, money_moves_work_to_the_cheaper_place) {
  make(1);
  EndpointFacts cheap = facts();
  cheap.usd_per_second = 0.0001;
  cheap.coefficients.b *= 2;
  state_->add(kTwo, cheap);
  EndpointFacts dear = facts();
  dear.usd_per_second = 0.001;
  state_->add(kOne, dear);
  EXPECT_EQ(ask().endpoint, kOne);
  query_.seconds_per_usd = 10'000;
  EXPECT_EQ(ask().endpoint, kTwo);
}

TEST_F(DecideTest, equal_places_share_the_requests) {
  config_.tie_band = 0.02;
  config_.near_ties_wanted = 8;
  make(500);
  std::set<std::uint32_t> chosen;
  for (int i = 0; i < 200; ++i) {
    const Decision d = ask();
    EXPECT_GE(d.near_ties, 8);
    chosen.insert(d.endpoint.value());
  }
  EXPECT_GT(chosen.size(), 40u) << "gateways with one view must not agree on one place";
}

TEST_F(DecideTest, of_two_drawn_the_better_is_taken) {
  config_.tie_band = 0.5;
  make(2);
  send(kOne, {100, 0, 10});
  for (int i = 0; i < 20; ++i) {
    const Decision d = ask();
    EXPECT_EQ(d.near_ties, 2);
    EXPECT_EQ(d.endpoint, kTwo) << "both are drawn, the second is better";
  }
}

TEST_F(DecideTest, an_idle_fleet_is_decided_after_a_few_places) {
  make(5000);
  const Decision d = ask();
  EXPECT_LE(d.evaluated, 8u);
  EXPECT_LE(d.bounded, 16u);
}

}  // namespace
}  // namespace signalbox::routing
