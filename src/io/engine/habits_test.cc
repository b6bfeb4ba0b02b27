// SPDX-License-Identifier: Apache-2.0
// Goal: the habits that were observed on real engines stay as they are. Method: one line per fact.
#include "io/engine/habits.h"

#include <gtest/gtest.h>

namespace signalbox::engine {
namespace {

using model::EngineKind;

TEST(Habits, LlamaCppIsAskedForStreamsAndNeverSeesAConversationId) {
  const Habits& h = habits(EngineKind::LlamaCpp);
  EXPECT_TRUE(h.ask_stream_always);
  EXPECT_TRUE(h.closes_after_stream);
  EXPECT_TRUE(h.empty_assistant_breaks);
  EXPECT_FALSE(h.checks_model);
  EXPECT_FALSE(h.cache_salt);
  EXPECT_EQ(h.stripped_header, "X-Conversation-Id");
  EXPECT_TRUE(h.rank_header.empty());
}

TEST(Habits, OnlyVllmAndSglangPinRanks) {
  EXPECT_EQ(habits(EngineKind::Vllm).rank_header, "X-data-parallel-rank");
  EXPECT_EQ(habits(EngineKind::Sglang).rank_header, "X-Data-Parallel-Rank");
  EXPECT_TRUE(habits(EngineKind::TrtLlm).rank_header.empty());
}

TEST(Habits, AnUnknownServerIsAskedForNothingUnusual) {
  for (EngineKind kind : {EngineKind::Auto, EngineKind::OpenAi}) {
    const Habits& h = habits(kind);
    EXPECT_FALSE(h.ask_stream_always);
    EXPECT_FALSE(h.cache_salt);
    EXPECT_FALSE(h.priority);
    EXPECT_FALSE(h.speaks_messages);
    EXPECT_TRUE(h.include_usage);
  }
}

}  // namespace
}  // namespace signalbox::engine
