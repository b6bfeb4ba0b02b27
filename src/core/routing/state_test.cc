// SPDX-License-Identifier: Apache-2.0
// Goal: the load that State keeps is that of the requests in flight, and nothing is left behind.
// Method: short stories with numbers by hand.
#include "core/routing/state.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace signalbox::routing {
namespace {

using model::AttemptId;
using model::EndpointId;
using model::RequestId;

constexpr EndpointId kOne{1};

Instant at(double seconds) { return Instant{from_seconds(seconds)}; }
RequestKey key(std::uint64_t request) { return {RequestId(request), AttemptId(1)}; }

// 1 ms a prompt token; step = 10 ms + 1 ms a request; 10,000 tokens of KV.
EndpointFacts facts() {
  EndpointFacts f;
  f.pool = model::PoolId(1);
  f.model = model::ModelId(1);
  f.coefficients.b = 1e-3;
  f.coefficients.d = 10e-3;
  f.coefficients.e1 = f.coefficients.e2 = 1e-3;
  f.coefficients.kv_capacity_tokens = 10'000;
  f.concurrency_limit = 8;
  f.uncertainty = 0.2;
  return f;
}

class StateTest : public testing::Test {
 protected:
  StateTest() { state_.add(kOne, facts()); }

  Inputs inputs(double seconds, std::int64_t prompt = 100, double output = 50) {
    Query q;
    q.model = model::ModelId(1);
    q.prompt_tokens = prompt;
    q.output_mean = output;
    return state_.inputs(kOne, q, at(seconds));
  }

  State state_{Config{}};
};

TEST_F(StateTest, the_heads_elapsed_part_is_taken_off_the_wait) {
  state_.dispatched(kOne, key(1), {1000, 0, 50}, at(10));
  state_.dispatched(kOne, key(2), {500, 0, 50}, at(10));
  EXPECT_NEAR(inputs(10).wait, 1.5, 1e-5);
  EXPECT_NEAR(inputs(10.4).wait, 1.1, 1e-5);
  EXPECT_NEAR(inputs(10.4).queued, 1100, 0.1);
  EXPECT_NEAR(inputs(60).wait, 0.5, 1e-5) << "only the head has begun";
  EXPECT_NEAR(inputs(60).queued, 500, 0.1);
}

TEST_F(StateTest, the_next_head_begins_when_the_first_has_its_token) {
  state_.dispatched(kOne, key(1), {1000, 0, 50}, at(10));
  state_.dispatched(kOne, key(2), {500, 0, 50}, at(10));
  EXPECT_TRUE(state_.first_token(key(1), at(11.5)));
  EXPECT_NEAR(inputs(11.5).wait, 0.5, 1e-5);
  EXPECT_NEAR(inputs(11.8).wait, 0.2, 1e-5);
  EXPECT_EQ(inputs(11.8).decoding, 1);
  EXPECT_EQ(inputs(11.8).in_flight, 2);
}

TEST_F(StateTest, a_first_token_out_of_order_leaves_the_head_alone) {
  state_.dispatched(kOne, key(1), {1000, 0, 50}, at(10));
  state_.dispatched(kOne, key(2), {500, 0, 50}, at(10));
  state_.first_token(key(2), at(10.2));
  EXPECT_NEAR(inputs(10.4).wait, 0.6, 1e-5);
}

TEST_F(StateTest, who_is_held_weighs_as_if_sent_and_feeds_nobody) {
  state_.dispatched(kOne, key(1), {1000, 0, 50}, at(10));
  EXPECT_TRUE(state_.hold(kOne, key(2), {500, 0, 50}, at(30), at(10)));
  EXPECT_NEAR(inputs(10.4).wait, 1.1, 1e-5);
  EXPECT_EQ(inputs(10.4).in_flight, 2);
  EXPECT_EQ(state_.load(kOne, at(10)).held, 1);
  EXPECT_EQ(state_.feed(kOne).requests, 1);
  EXPECT_EQ(state_.feed(kOne).tokens, 1000);
  EXPECT_FALSE(state_.first_token(key(2), at(11))) << "it was not sent";
  EXPECT_TRUE(state_.ended(key(2), at(11)));
  EXPECT_TRUE(state_.ended(key(1), at(12)));
  EXPECT_TRUE(state_.idle());
}

TEST_F(StateTest, who_is_held_stands_in_the_order_of_turns) {
  const auto hold = [&](std::uint64_t request, double turn) {
    EXPECT_TRUE(state_.hold(kOne, key(request), {100, 0, 50}, at(turn), at(10)));
  };
  EXPECT_EQ(state_.held_front_turn(kOne), kNever);
  hold(1, 30), hold(2, 20), hold(3, 25), hold(4, 20), hold(5, 40);
  for (const std::uint64_t next : {2, 4, 3, 1, 5}) {
    EXPECT_EQ(state_.held_front(kOne).request, RequestId(next));
    EXPECT_TRUE(state_.ended(state_.held_front(kOne), at(11)));
  }
  EXPECT_FALSE(state_.held_front(kOne).request);
  EXPECT_TRUE(state_.idle());
}

TEST_F(StateTest, the_gauge_does_not_know_who_is_held) {
  state_.dispatched(kOne, key(1), {1000, 0, 50}, at(10));
  state_.hold(kOne, key(2), {500, 0, 50}, at(30), at(10));
  model::EngineState told;
  told.running = 1;
  told.waiting = 1;
  state_.observed(kOne, told, at(11));
  EXPECT_EQ(state_.load(kOne, at(11)).others, 1) << "two are there, one is ours";
}

TEST_F(StateTest, gauges_beyond_all_reason_are_survived) {
  model::EngineState told;
  told.running = told.waiting = 2'000'000'000;
  state_.observed(kOne, told, at(10));
  EXPECT_GT(state_.load(kOne, at(10)).others, 1'000'000);
  told.running = told.waiting = std::numeric_limits<int>::min();
  state_.observed(kOne, told, at(11));
  EXPECT_GE(state_.load(kOne, at(11)).others, 0);
}

TEST_F(StateTest, whatever_an_engine_tells_of_its_memory_it_takes_a_token) {
  model::EngineState told;
  told.kv_capacity_tokens = 1;
  state_.observed(kOne, told, at(10));
  Query q;
  q.model = model::ModelId(1);
  q.prompt_tokens = 1;
  q.output_mean = 1;
  EXPECT_TRUE(state_.feasible(kOne, q));
  q.prompt_tokens = 2;
  EXPECT_FALSE(state_.feasible(kOne, q));
}

TEST_F(StateTest, kv_and_step_follow_the_tokens_in_flight) {
  state_.dispatched(kOne, key(1), {1000, 200, 50}, at(10));
  EXPECT_EQ(inputs(10).kv, 1200);
  EXPECT_NEAR(inputs(10).pass, 0.010, 1e-6) << "it does not decode yet";
  EXPECT_EQ(inputs(10).pass_wait, 0);
  state_.first_token(key(1), at(11));
  state_.progress(key(1), 30, at(11));
  EXPECT_EQ(inputs(11).kv, 1230);
  EXPECT_NEAR(inputs(11).pass, 0.011, 1e-6);
  EXPECT_NEAR(inputs(11).pass_wait, 0.0055, 1e-6);
}

TEST_F(StateTest, without_decoders_a_first_token_costs_the_fixed_part_of_a_pass) {
  EndpointFacts slow_start = facts();
  slow_start.coefficients.a = 0.3;
  state_.add(kOne, slow_start);
  Ask ask;
  ask.prompt = 100;
  EXPECT_NEAR(score(ask, inputs(10)).ttft, 0.3 + 0.1, 1e-5);
  state_.dispatched(kOne, key(1), {1000, 0, 50}, at(10));
  state_.first_token(key(1), at(11));
  EXPECT_NEAR(score(ask, inputs(11)).ttft, 1.5 * 0.011 + 0.1, 1e-5) << "beside a step of decoding";
}

TEST_F(StateTest, overlap_is_what_remains_but_at_most_our_own_output) {
  state_.dispatched(kOne, key(1), {10, 0, 100}, at(10));
  state_.dispatched(kOne, key(2), {10, 0, 1000}, at(10));
  EXPECT_EQ(inputs(10, 100, 50).overlap, 100);    // 50 + 50
  EXPECT_EQ(inputs(10, 100, 400).overlap, 500);   // 100 + 400
  state_.progress(key(2), 900, at(11));
  EXPECT_EQ(inputs(10, 100, 400).overlap, 225);   // 100 + an eighth of the mean at least
}

TEST_F(StateTest, a_digest_of_progress_is_what_its_entries_are) {
  State one{Config{}};
  one.add(kOne, facts());
  for (State* state : {&state_, &one}) {
    for (std::uint64_t i = 1; i <= 3; ++i) state->dispatched(kOne, key(i), {100, 0, 50}, at(10));
    state->first_token(key(1), at(11));
  }
  const State::Step steps[] = {{key(1), 30}, {key(2), 4}, {key(9), 7}, {key(1), 20}};
  state_.progress(steps, at(12));
  for (const State::Step& step : steps) one.progress(step.key, step.tokens, at(12));
  Query q;
  q.model = model::ModelId(1);
  q.prompt_tokens = 100;
  q.output_mean = 50;
  EXPECT_EQ(inputs(12).kv, 300 + 30 + 4);
  EXPECT_EQ(inputs(12).kv, one.inputs(kOne, q, at(12)).kv);
  EXPECT_EQ(inputs(12).overlap, one.inputs(kOne, q, at(12)).overlap);
  EXPECT_EQ(state_.silence(kOne, at(12)), one.silence(kOne, at(12)));
}

TEST_F(StateTest, arrivals_decay_over_the_last_minute) {
  for (std::uint64_t i = 1; i <= 6; ++i) state_.dispatched(kOne, key(i), {10, 0, 5}, at(100));
  EXPECT_NEAR(inputs(100).arrivals, 0.1, 1e-4);
  EXPECT_NEAR(inputs(160).arrivals, 0.1 * std::exp(-1), 1e-4);
  EXPECT_NEAR(inputs(5000).arrivals, 0, 1e-6);
}

TEST_F(StateTest, arrivals_survive_a_new_base_time) {
  state_.dispatched(kOne, key(1), {10, 0, 5}, at(100'000));
  state_.dispatched(kOne, key(2), {10, 0, 5}, at(100'930));
  state_.dispatched(kOne, key(3), {10, 0, 5}, at(100'970));
  EXPECT_NEAR(inputs(100'970).arrivals, (1 + std::exp(-40.0 / 60)) / 60, 1e-4);
}

TEST_F(StateTest, memory_is_waited_for_when_the_prompt_does_not_fit_now) {
  EXPECT_EQ(inputs(10, 5000).kv_wait, 0);
  state_.dispatched(kOne, key(1), {8000, 0, 100}, at(10));
  state_.first_token(key(1), at(18));
  // Needs 5,050 of which 2,000 are free. 100 tokens remain, 11 ms each; all 8,000 are free after
  // twice the mean: 2.2 s.
  EXPECT_NEAR(inputs(18, 5000).kv_wait, 3050.0 / 8000 * 2.2, 1e-3);
}

TEST_F(StateTest, others_have_what_the_gauge_shows_beyond_ours) {
  state_.dispatched(kOne, key(1), {100, 0, 50}, at(10));
  state_.first_token(key(1), at(10.1));
  model::EngineState engine;
  engine.running = 4;
  engine.waiting = 2;
  engine.kv_usage = 0.5;
  state_.observed(kOne, engine, at(11));
  const Load load = state_.load(kOne, at(11));
  EXPECT_EQ(load.ours, 1);
  EXPECT_EQ(load.others, 5);
  EXPECT_EQ(load.kv_tokens, 5000);
  EXPECT_GT(load.wait_seconds, 0) << "two of them wait for their prefill";
  EXPECT_EQ(inputs(11).in_flight, 6);
  EXPECT_EQ(inputs(11).decoding, 4);
}

TEST_F(StateTest, our_own_requests_are_no_others) {
  for (std::uint64_t i = 1; i <= 3; ++i) state_.dispatched(kOne, key(i), {100, 0, 50}, at(10));
  model::EngineState engine;
  engine.running = 2;
  engine.waiting = 0;
  state_.observed(kOne, engine, at(11));
  EXPECT_EQ(state_.load(kOne, at(11)).others, 0);
}

TEST_F(StateTest, metrics_that_say_nothing_change_nothing_of_others) {
  model::EngineState engine;
  engine.running = 3;
  state_.observed(kOne, engine, at(11));
  state_.observed(kOne, model::EngineState{}, at(12));
  EXPECT_EQ(state_.load(kOne, at(12)).others, 3);
}

TEST_F(StateTest, others_of_whom_nothing_is_told_any_more_are_forgotten) {
  model::EngineState engine;
  engine.running = 50;
  engine.kv_usage = 0.5;
  state_.observed(kOne, engine, at(11));
  for (int second = 12; second <= 16; ++second) {
    state_.observed(kOne, model::EngineState{}, at(second));
    EXPECT_EQ(state_.load(kOne, at(second)).others, 50) << second;
  }
  EXPECT_GT(inputs(16.4).uncertainty, inputs(11).uncertainty);
  state_.observed(kOne, model::EngineState{}, at(16.5));
  EXPECT_EQ(state_.load(kOne, at(17)).others, 0);
  EXPECT_EQ(state_.load(kOne, at(17)).kv_used, 0);
  state_.observed(kOne, engine, at(18));
  EXPECT_EQ(state_.load(kOne, at(18)).others, 50);
}

TEST_F(StateTest, missing_and_stale_metrics_widen_uncertainty_up_to_a_limit) {
  EXPECT_NEAR(inputs(10).uncertainty, 0.3, 1e-6) << "never seen";
  state_.observed(kOne, model::EngineState{}, at(10));
  EXPECT_NEAR(inputs(14).uncertainty, 0.2, 1e-6);
  EXPECT_NEAR(inputs(20).uncertainty, 0.4, 1e-6) << "two ages of five seconds";
  EXPECT_NEAR(inputs(9000).uncertainty, 1.0, 1e-6);
}

TEST_F(StateTest, the_gauge_corrects_shared_prefixes_in_memory) {
  for (std::uint64_t i = 1; i <= 3; ++i) state_.dispatched(kOne, key(i), {0, 3000, 50}, at(10));
  EXPECT_EQ(state_.load(kOne, at(10)).kv_used, 9000);
  model::EngineState engine;
  engine.kv_usage = 0.3;
  state_.observed(kOne, engine, at(11));
  EXPECT_EQ(state_.load(kOne, at(11)).kv_used, 3000);
  state_.ended(key(1), at(12));
  EXPECT_EQ(state_.load(kOne, at(12)).kv_used, 0);
}

TEST_F(StateTest, the_first_token_of_a_plain_answer_is_presumed_when_it_is_due) {
  state_.dispatched(kOne, key(1), {1000, 0, 50, true}, at(10));
  state_.dispatched(kOne, key(2), {500, 0, 50}, at(10));
  state_.presume(kOne, at(10.9));
  EXPECT_EQ(state_.load(kOne, at(10.9)).queued, 2);
  state_.presume(kOne, at(11.2));
  EXPECT_EQ(state_.load(kOne, at(11.2)).queued, 1);
  EXPECT_EQ(inputs(11.2).decoding, 1);
  EXPECT_NEAR(inputs(11.2).wait, 0.3, 1e-5) << "the next one began at 11";
  state_.presume(kOne, at(60));
  EXPECT_EQ(state_.load(kOne, at(60)).queued, 1) << "that of a stream is seen";
  EXPECT_TRUE(state_.ended(key(1), at(61)));
  EXPECT_TRUE(state_.ended(key(2), at(61)));
  EXPECT_TRUE(state_.idle());
}

TEST_F(StateTest, silence_counts_from_the_first_token_that_is_due) {
  state_.dispatched(kOne, key(1), {1000, 0, 50}, at(10));
  EXPECT_EQ(state_.silence(kOne, at(10.9)), 0);
  EXPECT_EQ(state_.silence(kOne, at(11.9)), 0) << "not late by its whole prediction";
  EXPECT_NEAR(state_.silence(kOne, at(14)), 3, 1e-9);
  state_.dispatched(kOne, key(2), {100, 0, 50}, at(14));
  EXPECT_NEAR(state_.silence(kOne, at(15)), 4, 1e-9) << "who comes later ends no silence";
  state_.ended(key(2), at(15));
  EXPECT_NEAR(state_.silence(kOne, at(15)), 4, 1e-9) << "nor who leaves";
  state_.first_token(key(1), at(15));
  EXPECT_EQ(state_.silence(kOne, at(15)), 0);
}

TEST_F(StateTest, an_engine_whose_answers_grow_is_not_silent) {
  state_.dispatched(kOne, key(1), {100, 0, 50}, at(10));
  state_.first_token(key(1), at(10.1));
  state_.dispatched(kOne, key(2), {100, 0, 50}, at(11));
  state_.progress(key(1), 5, at(19.9));
  EXPECT_EQ(state_.silence(kOne, at(19.95)), 0);
  state_.progress(key(1), 5, at(20.5));
  EXPECT_NEAR(state_.silence(kOne, at(21)), 1.1, 1e-9) << "the same count again is no growth";
}

TEST_F(StateTest, plain_answers_are_no_silence) {
  state_.dispatched(kOne, key(1), {100, 0, 50, true}, at(10));
  EXPECT_EQ(state_.silence(kOne, at(60)), 0);
  state_.dispatched(kOne, key(2), {100, 0, 50}, at(60));
  EXPECT_NEAR(state_.silence(kOne, at(62)), 1.9, 1e-9) << "a stream behind it would be seen";
}

TEST_F(StateTest, late_and_duplicate_events_change_nothing) {
  EXPECT_FALSE(state_.first_token(key(1), at(1)));
  EXPECT_FALSE(state_.progress(key(1), 10, at(11)));
  EXPECT_FALSE(state_.ended(key(1), at(1)));
  EXPECT_TRUE(state_.dispatched(kOne, key(1), {100, 0, 50}, at(1)));
  EXPECT_FALSE(state_.dispatched(kOne, key(1), {100, 0, 50}, at(1)));
  EXPECT_FALSE(state_.dispatched(EndpointId(9), key(2), {100, 0, 50}, at(1)));
  EXPECT_TRUE(state_.first_token(key(1), at(1)));
  EXPECT_FALSE(state_.first_token(key(1), at(2)));
  EXPECT_TRUE(state_.progress(key(1), 20, at(11)));
  EXPECT_TRUE(state_.progress(key(1), 10, at(11)));
  EXPECT_EQ(state_.load(kOne, at(2)).kv_tokens, 120);
  EXPECT_TRUE(state_.ended(key(1), at(2)));
  EXPECT_FALSE(state_.ended(key(1), at(2)));
  EXPECT_TRUE(state_.idle());
}

TEST_F(StateTest, all_is_zero_again_on_every_path) {
  for (std::uint64_t i = 1; i <= 6; ++i) state_.dispatched(kOne, key(i), {100, 7, 50}, at(10));
  state_.first_token(key(2), at(11));
  state_.first_token(key(3), at(11));
  state_.progress(key(3), 500, at(11));
  state_.progress(key(4), 3, at(11));
  EXPECT_FALSE(state_.idle());
  for (std::uint64_t i = 1; i <= 6; ++i) state_.ended(key(i), at(12));
  EXPECT_TRUE(state_.idle());
  EXPECT_EQ(inputs(12).wait, 0);
  EXPECT_EQ(inputs(12).kv, 0);
}

TEST_F(StateTest, removing_an_endpoint_forgets_what_was_in_flight_there) {
  state_.dispatched(kOne, key(1), {100, 0, 50}, at(10));
  state_.dispatched(kOne, key(2), {100, 0, 50}, at(10));
  state_.first_token(key(1), at(11));
  state_.remove(kOne);
  EXPECT_TRUE(state_.idle());
  EXPECT_FALSE(state_.contains(kOne));
  EXPECT_FALSE(state_.ended(key(1), at(12)));
}

TEST_F(StateTest, new_facts_keep_the_load) {
  state_.dispatched(kOne, key(1), {100, 0, 50}, at(10));
  EndpointFacts other = facts();
  other.pool = model::PoolId(2);
  state_.add(kOne, other);
  EXPECT_EQ(state_.load(kOne, at(10)).ours, 1);
  state_.ended(key(1), at(11));
  EXPECT_TRUE(state_.idle());
}

TEST_F(StateTest, the_table_of_requests_in_flight_has_a_limit) {
  Config config;
  config.in_flight_max = 2;
  State state(config);
  state.add(kOne, facts());
  EXPECT_TRUE(state.dispatched(kOne, key(1), {}, at(1)));
  EXPECT_TRUE(state.dispatched(kOne, key(2), {}, at(1)));
  EXPECT_FALSE(state.dispatched(kOne, key(3), {}, at(1)));
  state.ended(key(1), at(1));
  EXPECT_TRUE(state.dispatched(kOne, key(3), {}, at(1)));
}

TEST_F(StateTest, the_shadow_grows_with_load_and_utilisation) {
  Query q;
  q.model = model::ModelId(1);
  EXPECT_EQ(state_.ask(q, at(10)).shadow, 0);
  for (std::uint64_t i = 1; i <= 4; ++i) state_.dispatched(kOne, key(i), {5000, 0, 50}, at(10));
  // 20 s of prefill and a little decode within a decaying minute: about a third busy, four deep.
  const float shadow = state_.ask(q, at(10)).shadow;
  EXPECT_GT(shadow, 4 * (1.0 / 3) / (2.0 / 3));
  EXPECT_LT(shadow, 4 * 0.9 / 0.1);
  EXPECT_NEAR(state_.ask(q, at(10)).mean_b, 1e-3, 1e-9);
}

}  // namespace
}  // namespace signalbox::routing
