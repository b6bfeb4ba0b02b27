// SPDX-License-Identifier: Apache-2.0
// Goal: what answers and looks tell changes where the next request goes and what is predicted.
// Method: scenarios by hand, with an engine by formula whose speed the core is not told.
#include <cmath>

#include "base/rng.h"
#include "core/flow/desk_for_test.inc"

namespace signalbox::flow {
namespace {

// A prompt of whole blocks of 2,048 bytes: a conversation's first `blocks` ones.
model::RequestArrived turn(const Desk& desk, std::uint64_t conversation, int blocks) {
  model::RequestArrived r = desk.request();
  for (int i = 1; i <= blocks; ++i) {
    r.prompt.chain.push_back({conversation * 1000 + static_cast<std::uint64_t>(i), i * 2048});
  }
  r.prompt.bytes = blocks * 2048;
  return r;
}

void answer(Desk& desk, model::RequestId id, std::int64_t prompt, std::int64_t cached) {
  desk.now += 200ms;
  desk.first_token(id);
  desk.now += 300ms;
  model::AttemptEnded e = desk.ending(id, AttemptResult::Ok);
  e.usage = {prompt, cached, 20};
  desk.tell(e);
}

TEST(Affinity, TheSecondTurnGoesWhereTheFirstWas) {
  Desk desk(8, 4);
  for (std::uint64_t c = 1; c <= 20; ++c) {
    const auto first = desk.arrive(turn(desk, c, 16));
    answer(desk, first, 8000, 0);
    desk.wait(1s);
    const auto second = desk.arrive(turn(desk, c, 18));
    EXPECT_EQ(desk.place(second), desk.place(first));
    const DecisionRecord* record = desk.core().decisions().find(desk.sent(second).decision);
    ASSERT_NE(record, nullptr);
    EXPECT_GT(record->cached_predicted, 6000);
    answer(desk, second, 9000, 8000);
  }
}

TEST(Affinity, AFullHolderIsLeftForAnotherPlace) {
  Desk desk(2, 2);
  const auto first = desk.arrive(turn(desk, 1, 16));
  answer(desk, first, 8000, 0);
  const auto holder = desk.place(first);
  std::vector<model::RequestId> others;
  for (int i = 0; i < 2; ++i) {
    const auto r = desk.arrive(turn(desk, 1, 17 + i));
    ASSERT_EQ(desk.place(r), holder);
    others.push_back(r);
  }
  EXPECT_NE(desk.place(desk.arrive(turn(desk, 1, 19))), holder);
}

TEST(Affinity, ASilentHolderIsLeftAndComesBack) {
  Desk desk(2, 64);
  const auto first = desk.arrive(turn(desk, 1, 64));
  answer(desk, first, 32'000, 0);
  const auto holder = desk.place(first);
  std::vector<model::RequestId> stuck;
  int elsewhere = 0;
  for (int i = 0; i < 40; ++i) {  // for ten seconds the holder says nothing; the other answers
    const auto r = desk.arrive(turn(desk, 1, 65));
    if (desk.place(r) == holder) {
      stuck.push_back(r);
      desk.wait(250ms);
      continue;
    }
    ++elsewhere;
    desk.wait(200ms);
    desk.first_token(r);
    desk.wait(50ms);
    desk.complete(r);
  }
  EXPECT_GT(elsewhere, 20) << "a hung engine must not take all who know it";
  for (const model::RequestId r : stuck) {
    desk.first_token(r);
    desk.complete(r);
  }
  desk.wait(1s);
  EXPECT_EQ(desk.core().endpoints(model::PoolId(1), desk.now)[0].load.ours, 0);
  EXPECT_EQ(desk.place(desk.arrive(turn(desk, 2, 1))), holder) << "nothing is held against it";
}

TEST(Affinity, ALoadedHolderIsLeftWhenWaitingCostsMoreThanComputing) {
  Desk desk(2, 64);
  const auto first = desk.arrive(turn(desk, 1, 2));
  answer(desk, first, 1000, 0);
  const auto holder = desk.place(first);
  model::EngineState busy;
  busy.running = 60;
  busy.waiting = 40;
  desk.observe(holder, busy);
  EXPECT_NE(desk.place(desk.arrive(turn(desk, 1, 3))), holder);
}

TEST(Affinity, ARestartEmptiesTheCache) {
  Desk desk(4, 4);
  model::EngineState state;
  state.incarnation = 5;
  const auto first = desk.arrive(turn(desk, 1, 16));
  const auto holder = desk.place(first);
  desk.observe(holder, state);
  answer(desk, first, 8000, 0);
  EXPECT_GT(desk.core().endpoints(model::PoolId(1), desk.now)[holder.value() - 1].cached_tokens, 0);
  state.incarnation = 6;
  desk.observe(holder, state);
  desk.wait(1s);
  EXPECT_EQ(desk.core().endpoints(model::PoolId(1), desk.now)[holder.value() - 1].cached_tokens, 0);
}

TEST(Affinity, ACounterThatRunsBackwardsIsARestart) {
  Desk desk(1, 4);
  model::EngineState state;
  state.generated_tokens_total = 1000;
  desk.observe(model::EndpointId(1), state);
  answer(desk, desk.arrive(turn(desk, 1, 16)), 8000, 0);
  state.generated_tokens_total = 10;
  desk.observe(model::EndpointId(1), state);
  EXPECT_EQ(desk.core().endpoints(model::PoolId(1), desk.now)[0].cached_tokens, 0);
}

TEST(Affinity, AFailedLookAloneIsNoRestart) {
  Desk desk(1, 4);
  model::EngineState state;
  state.incarnation = 5;
  desk.observe(model::EndpointId(1), state);
  answer(desk, desk.arrive(turn(desk, 1, 16)), 8000, 0);
  desk.tell(model::EndpointUnreachable{model::EndpointId(1)});
  desk.observe(model::EndpointId(1), state);
  EXPECT_GT(desk.core().endpoints(model::PoolId(1), desk.now)[0].cached_tokens, 0);
}

TEST(Affinity, TwoModelsShareNoCache) {
  Desk desk(1, 100);
  desk.fleet.models.push_back({model::ModelId(2), "n", "", 8, 0, 100'000, {}});
  model::Pool pool = desk.fleet.pools[0];
  pool.id = model::PoolId(2);
  pool.model = model::ModelId(2);
  desk.fleet.pools.push_back(pool);
  desk.add_endpoint(2);
  desk.fleet.routes.push_back({model::RouteId(2), "n", {{model::ModelId(2), 1}}, {}, {}, {}});
  answer(desk, desk.arrive(turn(desk, 1, 16)), 8000, 0);
  model::RequestArrived r = turn(desk, 1, 16);
  r.route = model::RouteId(2);
  const auto other = desk.arrive(r);
  EXPECT_EQ(desk.core().decisions().find(desk.sent(other).decision)->cached_predicted, 0);
}

// An engine of one request at a time, several times slower than anything that is assumed of it.
struct HiddenEngine {
  double fixed = 0.3, per_token = 2e-3, step = 0.2;
  double ttft(double tokens) const { return fixed + per_token * tokens; }
};

TEST(Calibration, PredictionsComeNearerToTheTruth) {
  Desk desk(2, 4);
  desk.config.decisions_kept = 1000;
  const HiddenEngine engine;
  Rng rng(5, "lengths");
  std::vector<double> errors;
  for (int i = 0; i < 300; ++i) {
    model::RequestArrived r = desk.request();
    const auto tokens = static_cast<std::int64_t>(rng.uniform(200, 6000));
    r.prompt.bytes = tokens * 4;
    const auto id = desk.arrive(r);
    const DecisionRecord* record = desk.core().decisions().find(desk.sent(id).decision);
    ASSERT_NE(record, nullptr);
    const double actual = engine.ttft(static_cast<double>(tokens)) * rng.uniform(0.95, 1.05);
    errors.push_back(std::abs(std::log(actual / record->ttft_predicted)));
    desk.wait(from_seconds(actual));
    desk.first_token(id);
    desk.wait(from_seconds(engine.step * 19));
    model::AttemptEnded e = desk.ending(id, AttemptResult::Ok);
    e.usage = {tokens, 0, 20};
    desk.tell(e);
    desk.wait(300ms);
  }
  const auto median = [](std::vector<double> values) {
    std::nth_element(values.begin(), values.begin() + 15, values.end());
    return values[15];
  };
  EXPECT_GT(errors.front(), 0.5) << "the prior knows nothing of this engine";
  EXPECT_LT(median({errors.end() - 31, errors.end()}), 0.1);
  const perf::Accuracy* accuracy = desk.core().accuracy(model::PoolId(1));
  ASSERT_NE(accuracy, nullptr);
  EXPECT_EQ(accuracy->summary(perf::Quantity::Ttft).count, 300u);
}

TEST(Calibration, AnEndpointThatIsSlowerThanItsPoolIsAvoided) {
  Desk desk(4, 8);
  Rng rng(6, "lengths");
  const model::EndpointId slow(3);
  int late_share = 0;
  for (int i = 0; i < 400; ++i) {
    model::RequestArrived r = desk.request();
    const auto tokens = static_cast<std::int64_t>(rng.uniform(1000, 4000));
    r.prompt.bytes = tokens * 4;
    const auto id = desk.arrive(r);
    const bool at_slow = desk.place(id) == slow;
    if (i >= 200 && at_slow) ++late_share;
    const double factor = at_slow ? 4 : 1;
    model::AttemptEnded e = desk.ending(id, AttemptResult::Ok);
    desk.wait(from_seconds(factor * 1e-4 * static_cast<double>(tokens)));
    desk.first_token(id);
    desk.wait(from_seconds(factor * 0.2));
    e.usage = {tokens, 0, 20};
    desk.tell(e);
    desk.wait(100ms);
  }
  EXPECT_LT(late_share, 20) << "a fair share would be 50";
}

TEST(Calibration, PromptsOfOthersDoNotMakeDecodingSlow) {
  Desk desk(1, 8);
  const auto run = [&](bool beside) {
    for (int i = 0; i < 60; ++i) {
      model::RequestArrived r = desk.request();
      r.prompt.bytes = 400;
      const auto id = desk.arrive(r);
      desk.wait(100ms);
      desk.first_token(id);
      desk.wait(1s);
      model::RequestId other;
      if (beside) {  // 4,000 tokens at 0.5 ms each hold the decoding up
        model::RequestArrived o = desk.request();
        o.prompt.bytes = 16'000;
        other = desk.arrive(o);
        desk.wait(2s);
        desk.first_token(other);
      }
      desk.wait(1s);
      model::AttemptEnded e = desk.ending(id, AttemptResult::Ok);
      e.usage = {100, 0, 100};
      desk.tell(e);
      if (beside) {
        desk.wait(20ms);
        model::AttemptEnded f = desk.ending(other, AttemptResult::Ok);
        f.usage = {4000, 0, 50};
        desk.tell(f);
      }
      desk.wait(300ms);
    }
    return desk.core().pool(model::PoolId(1)).coefficients.step(1, 150);
  };
  const double alone = run(false);
  EXPECT_NEAR(alone, 0.02, 0.004);
  EXPECT_LT(run(true), 1.35 * alone);
}

TEST(Ledger, WhatAnEngineCouldNotReportIsEstimatedApart) {
  Desk desk(1, 8);
  const auto r = desk.arrive(turn(desk, 1, 4));
  desk.first_token(r);
  desk.tell(model::Progress{{{r, desk.sent(r).attempt, 7}}});
  desk.leave(r);
  const ledger::Totals& all = desk.core().ledger().all();
  EXPECT_EQ(all.completion_tokens, 0) << "not told";
  EXPECT_EQ(all.estimated_completion_tokens, 7);
  EXPECT_GT(all.estimated_prompt_tokens, 1000);
  const auto whole = desk.arrive(turn(desk, 2, 4));
  answer(desk, whole, 2000, 0);
  EXPECT_EQ(all.completion_tokens, 20);
  EXPECT_EQ(all.estimated_completion_tokens, 7);
}

TEST(Ledger, ContentThatCameWithTheFailureIsEstimatedToo) {
  Desk desk(1, 8);
  const auto r = desk.arrive(turn(desk, 1, 4));
  model::AttemptEnded broken = desk.ending(r, AttemptResult::StreamError);
  broken.delivered = true;
  broken.tokens = 20;
  desk.tell(broken);
  const ledger::Totals& all = desk.core().ledger().all();
  EXPECT_EQ(all.estimated_completion_tokens, 20);
  EXPECT_GT(all.estimated_prompt_tokens, 1000);
}

TEST(Ledger, AnAnswerWithoutUsageIsEstimatedOneThatRefusesIsNot) {
  Desk desk(1, 8);
  const auto r = desk.arrive(turn(desk, 1, 4));
  model::AttemptEnded whole = desk.ending(r, AttemptResult::Ok);
  whole.tokens = 50;
  desk.tell(whole);
  const ledger::Totals& all = desk.core().ledger().all();
  EXPECT_EQ(all.estimated_completion_tokens, 50);
  const std::int64_t prompt = all.estimated_prompt_tokens;
  EXPECT_GT(prompt, 1000);
  desk.fail(desk.arrive(turn(desk, 2, 4)), AttemptResult::ClientError);
  EXPECT_EQ(all.estimated_prompt_tokens, prompt) << "nothing was computed as far as one knows";
}

TEST(Ledger, APromptThatWasToldIsNotEstimatedAsWell) {
  Desk desk(1, 8);
  model::RequestArrived embeddings = turn(desk, 1, 4);
  embeddings.api = model::Api::Embeddings;
  const auto r = desk.arrive(embeddings);
  model::AttemptEnded whole = desk.ending(r, AttemptResult::Ok);
  whole.usage = {777, -1, -1};
  desk.tell(whole);
  EXPECT_EQ(desk.core().ledger().all().prompt_tokens, 777);
  EXPECT_EQ(desk.core().ledger().all().estimated_prompt_tokens, 0);
}

TEST(CountTokens, ComputesNoPromptAndLeavesNoneBehind) {
  Desk desk(1, 8);
  model::RequestArrived r = turn(desk, 1, 16);
  r.api = model::Api::CountTokens;
  r.stream = false;
  const auto id = desk.arrive(r);
  EXPECT_LT(desk.core().decisions().of(id)[0]->decision.ask.prompt, 10);
  model::AttemptEnded e = desk.ending(id, AttemptResult::Ok);
  e.usage = {8000, -1, -1};
  desk.tell(e);
  EXPECT_EQ(desk.core().ledger().all().prompt_tokens, 0);
  EXPECT_EQ(desk.core().endpoints(model::PoolId(1), desk.now)[0].cached_tokens, 0);
  const auto next = desk.arrive(turn(desk, 1, 16));
  EXPECT_EQ(desk.core().decisions().of(next)[0]->cached_predicted, 0);
}

// Of two together the second takes four times as long, for reasons that nothing tells.
TEST(Stretch, WhatHappenedBesideOthersIsExpectedAgain) {
  Desk desk(1, 8);
  const DecisionRecord* alone = nullptr;
  const DecisionRecord* beside = nullptr;
  for (int i = 0; i < 100; ++i) {
    const auto a = desk.arrive(turn(desk, static_cast<std::uint64_t>(i), 4));
    const auto b = desk.arrive(turn(desk, static_cast<std::uint64_t>(i) + 500, 4));
    answer(desk, a, 2000, 0);
    desk.first_token(b);
    desk.now += 1200ms;
    model::AttemptEnded e = desk.ending(b, AttemptResult::Ok);
    e.usage = {2000, 0, 20};
    desk.tell(e);
    alone = desk.core().decisions().of(a)[0];
    beside = desk.core().decisions().of(b)[0];
  }
  EXPECT_NEAR(alone->e2e_predicted - alone->ttft_predicted, 0.3, 0.08);
  EXPECT_NEAR(beside->e2e_predicted - beside->ttft_predicted, 1.2, 0.3);
  EXPECT_GT(beside->stretch, 1.5 * alone->stretch);
}

TEST(Decisions, TellWhyARequestWaitedAndWhyItHadNoPlace) {
  Desk desk(1, 1);
  const auto runs = desk.arrive();
  const auto waits = desk.arrive();
  ASSERT_TRUE(desk.waits(waits));
  desk.wait(300ms);
  desk.complete(runs);
  auto of = desk.core().decisions().of(waits);
  ASSERT_EQ(of.size(), 2u) << "one when it came, one when it went; looks in between are not kept";
  EXPECT_EQ(of[0]->decision.kind, routing::Decision::Kind::Wait);
  EXPECT_FALSE(of[0]->attempt);
  const auto full = static_cast<std::size_t>(routing::Reason::Full);
  EXPECT_EQ(of[0]->decision.refusals[full].count, 1u);
  EXPECT_EQ(of[1]->attempt, model::AttemptId(1));
  EXPECT_EQ(of[1]->queued, 300ms);
  desk.fail(waits, AttemptResult::ServerError);
  of = desk.core().decisions().of(waits);
  ASSERT_EQ(of.size(), 3u);
  EXPECT_EQ(of[2]->decision.kind, routing::Decision::Kind::None);
  EXPECT_TRUE(of[2]->decision.retried);
}

TEST(Decisions, KeepWhatWasPredictedAndWhatCame) {
  Desk desk(2);
  const auto id = desk.arrive(turn(desk, 1, 4));
  answer(desk, id, 2000, 0);
  const auto of = desk.core().decisions().of(id);
  ASSERT_EQ(of.size(), 1u);
  EXPECT_TRUE(of[0]->over);
  EXPECT_EQ(of[0]->result, AttemptResult::Ok);
  EXPECT_EQ(of[0]->ttft, 200ms);
  EXPECT_EQ(of[0]->e2e, 500ms);
  EXPECT_EQ(of[0]->usage.prompt_tokens, 2000);
  EXPECT_GT(of[0]->ttft_predicted, 0);
}

TEST(Priors, APoolOfUnknownSpeedBesideAKnownOneIsTriedAndLearnt) {
  Desk desk(1, 8);
  desk.fleet.models[0].profile = "Llama-3.1-70B";
  model::Pool other = desk.fleet.pools[0];
  desk.fleet.pools[0].accelerator = "H100-SXM";
  desk.fleet.pools[0].tensor_parallel = 4;
  other.id = model::PoolId(2);
  other.name = "q";
  desk.fleet.pools.push_back(other);
  const auto unknown = desk.add_endpoint(2);
  std::map<model::EndpointId, int> places;
  for (int i = 0; i < 8; ++i) ++places[desk.place(desk.arrive())];
  EXPECT_EQ(places[unknown], 4);
}

}  // namespace
}  // namespace signalbox::flow
