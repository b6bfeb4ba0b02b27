// SPDX-License-Identifier: Apache-2.0
// Goal: the next question is always the right one: identity first, then load, identity again after
// a restart. Method: answers by hand, one after another.
#include "io/observe/conversation.h"

#include <gtest/gtest.h>

namespace signalbox::observe {
namespace {

using model::EngineKind;

constexpr std::string_view kVllm =
    R"({"data":[{"id":"m","owned_by":"vllm","max_model_len":2048}]})";
constexpr std::string_view kPage =
    "vllm:num_requests_running{engine=\"0\"} 2\nvllm:num_requests_running{engine=\"1\"} 3\n"
    "vllm:prompt_tokens_total{engine=\"0\"} 50\n";
constexpr std::string_view kFresh =
    "vllm:num_requests_running{engine=\"0\"} 0\nvllm:prompt_tokens_total{engine=\"0\"} 0\n";

engine::Answer ok(std::string_view body) { return {200, "uvicorn", body}; }

TEST(Conversation, FindsOutThenLooks) {
  Conversation talk(EngineKind::Auto);
  EXPECT_EQ(talk.path(), "/v1/models");
  EXPECT_FALSE(talk.looking());
  Conversation::Step step = talk.answer(ok(kVllm));
  EXPECT_TRUE(step.discovered);
  EXPECT_TRUE(step.ask_again);
  EXPECT_EQ(talk.discovery().kind, EngineKind::Vllm);
  EXPECT_EQ(talk.path(), "/metrics");
  EXPECT_TRUE(talk.looking());
  step = talk.answer(ok(kPage));
  EXPECT_TRUE(step.told);
  EXPECT_FALSE(step.ask_again);
  ASSERT_EQ(talk.states().size(), 1u);
  EXPECT_EQ(talk.states()[0].running, 5);
  EXPECT_EQ(talk.states()[0].context_tokens, 2048);
  EXPECT_EQ(talk.states()[0].incarnation, 1u);
  EXPECT_EQ(talk.path(), "/metrics");
}

TEST(Conversation, TellsEachRank) {
  Conversation talk(EngineKind::Vllm);
  talk.set_ranks({0, 1});
  (void)talk.answer(ok(kVllm));
  (void)talk.answer(ok(kPage));
  ASSERT_EQ(talk.states().size(), 2u);
  EXPECT_EQ(talk.states()[0].running, 2);
  EXPECT_EQ(talk.states()[1].running, 3);
}

TEST(Conversation, AsksAnewAfterARestart) {
  Conversation talk(EngineKind::Auto);
  (void)talk.answer(ok(kVllm));
  (void)talk.answer(ok(kPage));
  Conversation::Step step = talk.answer(ok(kFresh));
  EXPECT_TRUE(step.told);
  EXPECT_TRUE(step.ask_again);
  EXPECT_EQ(talk.states()[0].incarnation, 2u);
  EXPECT_EQ(talk.path(), "/v1/models");
}

TEST(Conversation, AsksAnewWhenAConnectionWasRefused) {
  Conversation talk(EngineKind::Auto);
  (void)talk.answer(ok(kVllm));
  (void)talk.answer(ok(kPage));
  EXPECT_TRUE(talk.failed(false));
  EXPECT_EQ(talk.path(), "/health");
  EXPECT_FALSE(talk.failed(true));
  EXPECT_EQ(talk.path(), "/v1/models");
  (void)talk.answer(ok(R"({"data":[{"id":"other"}]})"));
  (void)talk.answer({404, "", ""});
  EXPECT_EQ(talk.discovery().kind, EngineKind::OpenAi);
  EXPECT_TRUE(talk.answer(ok("{}")).told);
  EXPECT_EQ(talk.states()[0].incarnation, 2u);
}

// One answer that says otherwise is not for ever.
TEST(Conversation, LooksForLoadAnewWhenModelsAreRefreshed) {
  Conversation talk(EngineKind::LlamaCpp);
  (void)talk.answer({200, "llama.cpp", R"({"data":[{"id":"m"}]})"});
  (void)talk.answer(ok(R"({"total_slots":4})"));
  EXPECT_TRUE(talk.answer({501, "", ""}).ask_again);
  EXPECT_EQ(talk.path(), "/slots");
  talk.refresh();
  EXPECT_EQ(talk.path(), "/v1/models");
  (void)talk.answer({200, "llama.cpp", R"({"data":[{"id":"m"}]})"});
  (void)talk.answer(ok(R"({"total_slots":4})"));
  EXPECT_EQ(talk.path(), "/metrics");
}

TEST(Conversation, WaitsForAnEngineThatIsLoading) {
  Conversation talk(EngineKind::Auto);
  EXPECT_TRUE(talk.answer({503, "llama.cpp", "{}"}).down);
  EXPECT_FALSE(talk.known());
  EXPECT_EQ(talk.path(), "/v1/models");
}

TEST(Conversation, StartsOverWhenItIsCutShort) {
  Conversation talk(EngineKind::Auto);
  (void)talk.answer(ok(R"({"data":[{"id":"m"}]})"));
  EXPECT_EQ(talk.path(), "/metrics");
  EXPECT_FALSE(talk.failed(false));
  EXPECT_EQ(talk.path(), "/v1/models");
}

}  // namespace
}  // namespace signalbox::observe
