// SPDX-License-Identifier: Apache-2.0
// Goal: each term of the score means what the formula says. Method: one worked example by hand, in
// round numbers, and changes to it.
#include "core/routing/score.h"

#include <gtest/gtest.h>

namespace signalbox::routing {
namespace {

// 1,000 prompt tokens, 100 output tokens.
Ask ask() {
  Ask a;
  a.prompt = 1000;
  a.output = 100;
  return a;
}

// b = 1 ms a token, no quadratic part; step = 10 ms + 1 ms a request + 1 µs a token of KV.
Inputs place() {
  Inputs in;
  in.endpoint = model::EndpointId(1);
  in.b = 1e-3f;
  in.d = 10e-3f;
  in.e1 = in.e2 = 1e-3f;
  in.f = 1e-6f;
  in.pass = 10e-3f;
  in.pass_wait = 5e-3f;
  in.chunk = 1000;
  return in;
}

constexpr float kClose = 1e-5f;

TEST(Score, an_idle_place_costs_its_own_prefill_passes_and_decode) {
  const Terms t = score(ask(), place());
  EXPECT_NEAR(t.prefill, 1.0, kClose);          // 1,000 · 1 ms
  EXPECT_NEAR(t.passes, 0.015, kClose);         // one pass of 10 ms and half a step
  EXPECT_NEAR(t.ttft, 1.015, kClose);
  EXPECT_NEAR(t.tpot, 0.01205, kClose);         // 10 + 1·1 + 1,050 · 1 µs
  EXPECT_NEAR(t.own_decode, 1.205, kClose);
  EXPECT_NEAR(t.e2e, 2.22, kClose);
  EXPECT_NEAR(t.total, 2.22, kClose);
  EXPECT_EQ(t.imposed_stall, 0);
  EXPECT_EQ(t.shadow, 0);
  EXPECT_EQ(t.money, 0);
}

TEST(Score, cached_tokens_spare_linear_work_and_cost_attention) {
  Inputs in = place();
  in.cached = 600;
  EXPECT_NEAR(score(ask(), in).prefill, 0.4, kClose);
  in.c = 1e-6f;
  // 400 · 1 ms + 1 µs · 400 · (600 + 200)
  EXPECT_NEAR(score(ask(), in).prefill, 0.72, kClose);
}

TEST(Score, a_prompt_that_is_cached_whole_still_computes_one_token) {
  Inputs in = place();
  in.cached = 5000;
  EXPECT_NEAR(score(ask(), in).prefill, 1e-3, kClose);
}

TEST(Score, time_to_first_token_adds_reach_wait_and_memory) {
  Inputs in = place();
  in.reach = 0.1f;
  in.wait = 2;
  in.kv_wait = 0.5f;
  const Terms t = score(ask(), in);
  EXPECT_NEAR(t.ttft, 3.615, kClose);
  EXPECT_NEAR(t.reach, 0.1, kClose);
  EXPECT_NEAR(t.wait, 2, kClose);
  EXPECT_NEAR(t.kv_wait, 0.5, kClose);
}

TEST(Score, passes_count_the_queued_tokens_and_what_decoding_takes_of_the_budget) {
  Inputs in = place();
  in.queued = 800;
  EXPECT_NEAR(score(ask(), in).passes, 0.025, kClose);  // 1,800 tokens: two passes
  in.queued = 0;
  in.decoding = 1;                                      // 999 tokens a pass are left
  EXPECT_NEAR(score(ask(), in).passes, 0.025, kClose);
  in.decoding = 5000;                                   // a sixteenth is always left
  EXPECT_NEAR(score(ask(), in).passes, 0.165, kClose);
}

TEST(Score, own_prefill_stalls_everyone_in_flight) {
  Inputs in = place();
  in.in_flight = 7;
  EXPECT_NEAR(score(ask(), in).imposed_stall, 7.0, kClose);
}

TEST(Score, those_who_arrive_while_it_waits_are_delayed_by_its_prefill) {
  Inputs in = place();
  in.arrivals = 2;
  Ask a = ask();
  a.latency_weight = 4;
  // w · P · λ · T
  EXPECT_NEAR(score(a, in).imposed_arrivals, 4 * 1.0 * 2 * 1.015, 1e-4);
}

TEST(Score, each_step_of_the_others_gets_longer) {
  Inputs in = place();
  in.overlap = 400;
  // (1 ms + 1 µs · 1,050) · 400 / 2
  EXPECT_NEAR(score(ask(), in).imposed_step, 0.41, kClose);
}

TEST(Score, beyond_the_break_a_sequence_costs_the_second_slope) {
  Inputs in = place();
  in.e2 = 0.1e-3f;
  in.batch_break = 4;
  in.in_flight = 9;
  // 10 ms + 4 · 1 ms + 6 · 0.1 ms + 1.05 ms
  EXPECT_NEAR(score(ask(), in).tpot, 0.01565, kClose);
}

TEST(Score, the_shadow_is_charged_at_the_fleets_mean_speed) {
  Ask a = ask();
  a.shadow = 3;
  a.mean_b = 2e-3f;
  EXPECT_NEAR(score(a, place()).shadow, 6.0, kClose);
  Inputs held = place();
  held.cached = 500;
  EXPECT_NEAR(score(a, held).shadow, 3.0, kClose);
}

TEST(Score, money_is_marginal_engine_time_at_its_price) {
  Ask a = ask();
  a.seconds_per_usd = 1000;
  Inputs in = place();
  in.usd_per_second = 0.001f;
  // P + L·Δs = 1 + 100 · 2.05 ms
  EXPECT_NEAR(score(a, in).money, 1.205, kClose);
}

TEST(Score, the_latency_weight_multiplies_all_of_the_time_to_first_token) {
  Ask a = ask();
  a.latency_weight = 4;
  const Terms t = score(a, place());
  EXPECT_NEAR(t.total, 4 * 1.015 + 1.205, 1e-4);
  EXPECT_NEAR(t.reach + t.wait + t.own_prefill + t.passes + t.kv_wait, 4 * 1.015, 1e-4);
}

TEST(Score, the_parts_sum_up_to_the_total) {
  Ask a = ask();
  a.latency_weight = 2;
  a.seconds_per_usd = 500;
  a.shadow = 1.5f;
  a.mean_b = 1e-3f;
  Inputs in = place();
  in.reach = 0.01f;
  in.wait = 0.7f;
  in.queued = 700;
  in.kv_wait = 0.2f;
  in.in_flight = 5;
  in.kv = 9000;
  in.arrivals = 0.5f;
  in.overlap = 300;
  in.usd_per_second = 0.002f;
  const Terms t = score(a, in);
  const float sum = t.reach + t.wait + t.own_prefill + t.passes + t.kv_wait + t.own_decode +
                    t.imposed_stall + t.imposed_arrivals + t.imposed_step + t.shadow + t.money;
  EXPECT_NEAR(sum, t.total, 1e-4);
}

TEST(Score, violation_is_the_largest_relative_excess_over_an_objective) {
  Ask a = ask();
  EXPECT_EQ(score(a, place()).violation, 0);
  a.ttft_max = 2;
  EXPECT_EQ(score(a, place()).violation, 0);
  a.ttft_max = 0.5f;
  EXPECT_NEAR(score(a, place()).violation, 1.03, 1e-4);
  a.tpot_max = 0.001f;
  EXPECT_NEAR(score(a, place()).violation, 11.05, 1e-3);
}

TEST(Score, less_violation_goes_before_less_score) {
  Terms meets;
  meets.total = 10;
  Terms fails;
  fails.total = 1;
  fails.violation = 0.1f;
  EXPECT_TRUE(ranks_before(meets, fails));
  EXPECT_FALSE(ranks_before(fails, meets));
  EXPECT_FALSE(nearly_tied(meets, fails, 0.02f));
}

}  // namespace
}  // namespace signalbox::routing
