// SPDX-License-Identifier: Apache-2.0
// Goal: whatever an engine answers, the looker finds a path that tells its load, or settles for
// liveness. Method: recorded and hand-made answers fed in turn.
#include "io/engine/look.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>

#include "io/engine/json_state.h"
#include "io/engine/recorded_for_test.inc"

namespace signalbox::engine {
namespace {

using model::EngineKind;
using States = std::vector<model::EngineState>;

constexpr std::array<int, 1> kWhole = {-1};

TEST(Look, VllmTellsByMetrics) {
  Looker looker(EngineKind::Vllm);
  EXPECT_EQ(looker.path(), "/metrics");
  States states;
  EXPECT_EQ(looker.feed(200, recorded_file("vllm-0.32-metrics.txt"), kWhole, states), Look::Told);
  ASSERT_EQ(states.size(), 1u);
  EXPECT_EQ(states[0].generated_tokens_total, 1132);
  EXPECT_DOUBLE_EQ(looker.start_time(), 1.79597399657e9);
  EXPECT_EQ(looker.whole().generated_tokens_total, 1132);
}

TEST(Look, LlamaCppWithoutMetricsTellsBySlots) {
  Looker looker(EngineKind::LlamaCpp);
  States states;
  EXPECT_EQ(looker.feed(501, R"({"error":{"code":501}})", kWhole, states), Look::Elsewhere);
  EXPECT_EQ(looker.path(), "/slots");
  EXPECT_EQ(looker.feed(200, llamacpp_body("GET /slots"), kWhole, states), Look::Told);
  ASSERT_EQ(states.size(), 1u);
  EXPECT_EQ(states[0].slots, 4);
  EXPECT_EQ(states[0].running, 0);
  EXPECT_EQ(states[0].kv_capacity_tokens, 8192);
  EXPECT_EQ(states[0].context_tokens, 2048);
}

TEST(Look, LlamaCppWithoutEitherIsAskedForItsHealth) {
  Looker looker(EngineKind::LlamaCpp);
  States states;
  EXPECT_EQ(looker.feed(501, "", kWhole, states), Look::Elsewhere);
  EXPECT_EQ(looker.feed(404, "", kWhole, states), Look::Elsewhere);
  EXPECT_EQ(looker.path(), "/health");
  EXPECT_EQ(looker.feed(200, llamacpp_body("GET /health"), kWhole, states), Look::Alive);
  EXPECT_EQ(looker.feed(503, "", kWhole, states), Look::Down);
  EXPECT_TRUE(states.empty());
}

TEST(Look, LlamaCppIsNotLookedAtMoreOftenThanEveryTwoSeconds) {
  EXPECT_GE(manners(EngineKind::LlamaCpp).interval_min, std::chrono::seconds(2));
  EXPECT_EQ(manners(EngineKind::Vllm).interval_min, Duration::zero());
}

TEST(Look, SglangWithoutMetricsTellsByLoads) {
  Looker looker(EngineKind::Sglang);
  States states;
  EXPECT_EQ(looker.feed(404, R"({"detail":"Not Found"})", kWhole, states), Look::Elsewhere);
  EXPECT_EQ(looker.path(), "/v1/loads?include=core");
  constexpr std::array<int, 2> kRanks = {-1, 1};
  EXPECT_EQ(looker.feed(200,
                        R"({"timestamp":1,"loads":[
      {"dp_rank":0,"num_running_reqs":2,"num_waiting_reqs":1,"max_total_num_tokens":1000,
       "token_usage":0.25,"max_running_requests":32},
      {"dp_rank":1,"num_running_reqs":5,"num_waiting_reqs":0,"max_total_num_tokens":1000,
       "token_usage":0.75,"max_running_requests":32}]})",
                        kRanks, states),
            Look::Told);
  ASSERT_EQ(states.size(), 2u);
  EXPECT_EQ(states[0].running, 7);
  EXPECT_EQ(states[0].waiting, 1);
  EXPECT_DOUBLE_EQ(states[0].kv_usage, 0.5);
  EXPECT_EQ(states[0].kv_capacity_tokens, 2000);
  EXPECT_EQ(states[0].slots, 64);
  EXPECT_EQ(states[1].running, 5);
  EXPECT_EQ(states[1].kv_capacity_tokens, 1000);
}

TEST(Look, OldSglangTellsByGetLoad) {
  auto state = read_loads(R"([{"dp_rank":0,"num_reqs":7,"num_waiting_reqs":3}])", -1);
  ASSERT_TRUE(state);
  EXPECT_EQ(state->running, 4);
  EXPECT_EQ(state->waiting, 3);
}

constexpr std::string_view kIterations =
    R"([{"iter":1,"numActiveRequests":9,"numQueuedRequests":9,
         "kvCacheStats":{"maxNumBlocks":100,"usedNumBlocks":90,"tokensPerBlock":32}},
        {"iter":2,"numActiveRequests":2,"numQueuedRequests":1,"maxNumActiveRequests":64,
         "kvCacheStats":{"maxNumBlocks":100,"usedNumBlocks":25,"tokensPerBlock":32}}])";

TEST(Look, TrtLlmTellsByItsNewestIteration) {
  Looker looker(EngineKind::TrtLlm);
  States states;
  EXPECT_EQ(looker.path(), "/prometheus/metrics");
  EXPECT_EQ(looker.feed(404, "", kWhole, states), Look::Elsewhere);
  EXPECT_EQ(looker.path(), "/metrics");
  EXPECT_EQ(looker.feed(200, kIterations, kWhole, states), Look::Told);
  ASSERT_EQ(states.size(), 1u);
  EXPECT_EQ(states[0].running, 2);
  EXPECT_EQ(states[0].waiting, 1);
  EXPECT_EQ(states[0].slots, 64);
  EXPECT_DOUBLE_EQ(states[0].kv_usage, 0.25);
  EXPECT_EQ(states[0].kv_capacity_tokens, 3200);
}

TEST(Look, AnEmptyListOfIterationsMeansIdleOnlyAfterRecords) {
  Looker looker(EngineKind::TrtLlm);
  States states;
  (void)looker.feed(404, "", kWhole, states);
  EXPECT_EQ(looker.feed(200, "[]", kWhole, states), Look::Alive);
  EXPECT_EQ(looker.feed(200, kIterations, kWhole, states), Look::Told);
  EXPECT_EQ(looker.feed(200, "[]", kWhole, states), Look::Told);
  ASSERT_EQ(states.size(), 1u);
  EXPECT_EQ(states[0].running, 0);
  EXPECT_EQ(states[0].waiting, 0);
  EXPECT_EQ(states[0].kv_usage, -1);
}

TEST(Look, IterationsOfRanksAddUp) {
  constexpr std::string_view kTwo =
      R"([{"attentionDpRank":0,"numActiveRequests":2},{"attentionDpRank":1,"numActiveRequests":3},
          {"attentionDpRank":0,"numActiveRequests":4}])";
  EXPECT_EQ(read_iterations(kTwo, -1)->state.running, 7);
  EXPECT_EQ(read_iterations(kTwo, 0)->state.running, 4);
  EXPECT_FALSE(read_iterations("{}", -1));
  EXPECT_FALSE(read_iterations("[1]", -1));
}

TEST(Look, AnUnknownServerIsAliveWhileItAnswers) {
  Looker looker(EngineKind::OpenAi);
  States states;
  EXPECT_EQ(looker.path(), "/v1/models");
  EXPECT_EQ(looker.feed(401, "", kWhole, states), Look::Alive);
  EXPECT_EQ(looker.feed(200, "{}", kWhole, states), Look::Alive);
  EXPECT_EQ(looker.feed(503, "", kWhole, states), Look::Down);
}

// Whether it serves, its health tells; then load is asked for again.
TEST(Look, GarbageAndErrorsAreNotALoad) {
  Looker looker(EngineKind::Sglang);
  States states;
  for (const auto& [status, body] : {std::pair(500, ""), std::pair(200, "{]")}) {
    EXPECT_EQ(looker.feed(status, body, kWhole, states), Look::Elsewhere);
    EXPECT_TRUE(looker.instead());
    EXPECT_EQ(looker.path(), "/health");
    EXPECT_EQ(looker.feed(200, "", kWhole, states), Look::Alive);
    EXPECT_EQ(looker.path(), "/metrics");
  }
  EXPECT_EQ(looker.feed(500, "", kWhole, states), Look::Elsewhere);
  EXPECT_EQ(looker.feed(503, "", kWhole, states), Look::Down);
  EXPECT_EQ(looker.path(), "/metrics");
  EXPECT_EQ(looker.feed(200, "process_open_fds 3\n", kWhole, states), Look::Elsewhere);
  EXPECT_FALSE(looker.instead());
  EXPECT_TRUE(states.empty());
}

TEST(Look, SilenceAboutLoadIsNoSilence) {
  Looker looker(EngineKind::Vllm);
  EXPECT_TRUE(looker.unanswered());
  EXPECT_EQ(looker.path(), "/health");
  EXPECT_FALSE(looker.unanswered());
  EXPECT_EQ(looker.path(), "/metrics");
}

}  // namespace
}  // namespace signalbox::engine
