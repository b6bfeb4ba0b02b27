// SPDX-License-Identifier: Apache-2.0
// Goal: a restart is seen once, and nothing else looks like one. Method: sequences of looks.
#include "io/engine/incarnation.h"

#include <gtest/gtest.h>

namespace signalbox::engine {
namespace {

model::EngineState counted(std::int64_t prompt, std::int64_t generated) {
  model::EngineState state;
  state.prompt_tokens_total = prompt;
  state.generated_tokens_total = generated;
  return state;
}

TEST(Incarnation, AStartTimeOutweighsARefusal) {
  IncarnationTracker tracker;
  EXPECT_EQ(tracker.observe(1.7e9, counted(10, 10)), 1u);
  EXPECT_EQ(tracker.observe(1.7e9, counted(20, 20)), 1u);
  tracker.refused();
  EXPECT_EQ(tracker.observe(1.7e9, counted(30, 30)), 1u);
  EXPECT_EQ(tracker.observe(1.7e9 + 60, counted(50, 50)), 2u);
  EXPECT_EQ(tracker.observe(1.7e9 + 60, counted(60, 60)), 2u);
}

TEST(Incarnation, AFallingCounterTellsTwoLivesOfOneSecondApart) {
  IncarnationTracker tracker;
  EXPECT_EQ(tracker.observe(1.7e9, counted(10, 10)), 1u);
  EXPECT_EQ(tracker.observe(1.7e9, counted(5, 0)), 2u);
  EXPECT_EQ(tracker.observe(1.7e9, counted(6, 1)), 2u);
}

TEST(Incarnation, WithoutItAFallingCounterIsARestart) {
  IncarnationTracker tracker;
  EXPECT_EQ(tracker.observe(-1, counted(10, 10)), 1u);
  EXPECT_EQ(tracker.observe(-1, counted(10, 12)), 1u);
  EXPECT_EQ(tracker.observe(-1, counted(-1, -1)), 1u);
  EXPECT_EQ(tracker.observe(-1, counted(0, 0)), 2u);
  EXPECT_EQ(tracker.observe(-1, counted(3, 3)), 2u);
}

TEST(Incarnation, WithoutItRefusedAndBackIsARestart) {
  IncarnationTracker tracker;
  EXPECT_EQ(tracker.observe(-1, {}), 1u);
  tracker.refused();
  tracker.refused();
  EXPECT_EQ(tracker.observe(-1, {}), 2u);
  EXPECT_EQ(tracker.observe(-1, {}), 2u);
}

TEST(Incarnation, TheGarbageStartTimeOfLlamaCppIsNotBelieved) {
  IncarnationTracker tracker;
  EXPECT_EQ(tracker.observe(507926642, counted(10, 10)), 1u);
  EXPECT_EQ(tracker.observe(507999999, counted(11, 11)), 1u);
}

TEST(Incarnation, BeginsAnewWhenRefusedBeforeTheFirstLook) {
  IncarnationTracker tracker;
  tracker.refused();
  EXPECT_EQ(tracker.observe(-1, {}), 1u);
}

}  // namespace
}  // namespace signalbox::engine
