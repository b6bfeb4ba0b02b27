// SPDX-License-Identifier: Apache-2.0
// Goal: models and sizes of every dialect are read, and nonsense is not. Method: recorded and
// hand-made documents.
#include "io/engine/facts.h"

#include <gtest/gtest.h>

#include "io/engine/recorded_for_test.inc"

namespace signalbox::engine {
namespace {

TEST(Facts, ReadsModelsOfVllmWithAliasesAndAdapters) {
  auto models = parse_models(
      R"({"object":"list","data":[
          {"id":"base","owned_by":"vllm","root":"/weights","parent":null,"max_model_len":8192},
          {"id":"sql","owned_by":"vllm","root":"/loras/sql","parent":"base"},
          {"id":7},{"object":"model"}]})");
  ASSERT_TRUE(models);
  ASSERT_EQ(models->size(), 2u);
  EXPECT_EQ((*models)[0].context_tokens, 8192);
  EXPECT_EQ((*models)[0].root, "/weights");
  EXPECT_TRUE((*models)[0].parent.empty());
  EXPECT_EQ((*models)[1].parent, "base");
  EXPECT_EQ((*models)[1].context_tokens, -1);
}

TEST(Facts, ReadsTheRecordedModelOfLlamaCpp) {
  auto models = parse_models(llamacpp_body("GET /v1/models"));
  ASSERT_TRUE(models);
  ASSERT_EQ(models->size(), 1u);
  EXPECT_EQ((*models)[0].id, "smollm2-135m");
  EXPECT_EQ((*models)[0].owned_by, "llamacpp");
  EXPECT_EQ((*models)[0].context_tokens, 2048);
  EXPECT_NEAR((*models)[0].params_b, 0.1345, 0.0001);
  EXPECT_TRUE((*models)[0].aliases.empty());
  EXPECT_TRUE((*models)[0].loaded);
}

TEST(Facts, SeesModelsThatARouterHasNotLoaded) {
  auto models = parse_models(R"({"data":[{"id":"a","status":{"value":"unloaded"}},
                                         {"id":"b","status":{"value":"loaded"}}]})");
  ASSERT_TRUE(models);
  EXPECT_FALSE((*models)[0].loaded);
  EXPECT_TRUE((*models)[1].loaded);
}

TEST(Facts, ReadsTheRecordedPropsOfLlamaCpp) {
  auto facts = parse_props(llamacpp_body("GET /props"));
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->slots, 4);
  EXPECT_EQ(facts->context_tokens, 2048);
  EXPECT_EQ(facts->kv_capacity_tokens, 8192);
  EXPECT_EQ(facts->version, "b0-unknown");
}

TEST(Facts, ReadsServerInfoOfSglang) {
  auto facts = parse_server_info(
      R"({"context_length":32768,"dp_size":2,"max_running_requests":64,"version":"0.6.0",
          "max_total_num_tokens":1000,"internal_states":[{"memory_usage":{"token_capacity":1000}},
          {"memory_usage":{"token_capacity":1200}}]})");
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->ranks, 2);
  EXPECT_EQ(facts->kv_capacity_tokens, 2200);
  EXPECT_EQ(facts->slots, 64);
  EXPECT_EQ(facts->context_tokens, 32768);
  auto plain = parse_server_info(
      R"({"dp_size":2,"context_length":null,"max_total_num_tokens":1000,"internal_states":[]})");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->kv_capacity_tokens, 2000);
  EXPECT_EQ(plain->context_tokens, -1);
}

TEST(Facts, CompletesOnlyWhatALookLeftUnknown) {
  Facts facts;
  facts.slots = 8;
  facts.ranks = 2;
  facts.kv_capacity_tokens = 2000;
  facts.models.push_back({});
  facts.models[0].context_tokens = 512;
  model::EngineState state;
  complete(state, facts, -1);
  EXPECT_EQ(state.slots, 8);
  EXPECT_EQ(state.kv_capacity_tokens, 2000);
  EXPECT_EQ(state.context_tokens, 512);
  model::EngineState rank;
  rank.kv_capacity_tokens = 7;
  complete(rank, facts, 1);
  EXPECT_EQ(rank.slots, 4);
  EXPECT_EQ(rank.kv_capacity_tokens, 7);
}

TEST(Facts, NonsenseIsAnErrorOrUnknown) {
  EXPECT_FALSE(parse_models("<html>"));
  EXPECT_FALSE(parse_models(R"({"data":{}})"));
  EXPECT_FALSE(parse_props("[]"));
  EXPECT_FALSE(parse_server_info(""));
  auto props = parse_props(R"({"total_slots":-4,"default_generation_settings":{"n_ctx":1e300}})");
  ASSERT_TRUE(props);
  EXPECT_EQ(props->slots, -1);
  EXPECT_EQ(props->context_tokens, -1);
  EXPECT_EQ(props->kv_capacity_tokens, -1);
  EXPECT_FALSE(parse_models(std::string(100'000, '[')));
}

}  // namespace
}  // namespace signalbox::engine
