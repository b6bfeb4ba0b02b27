// SPDX-License-Identifier: Apache-2.0
// Goal: the retry rules and the outcome of each ending. Method: a fleet as a list of results.
#include "core/recovery/retry.h"

#include <gtest/gtest.h>

#include "core/recovery/retry_budget.h"

namespace signalbox::recovery {
namespace {

using model::AttemptResult;
using model::Outcome;
using Answer = model::Conclude::Answer;

Decision decide(AttemptResult result, int status = 0, bool delivered = false) {
  return decide_retry(Config{}, {.result = result, .status = status, .delivered = delivered,
                                 .attempts = 1, .answers = answered(result) ? 1 : 0,
                                 .budget_left = true, .endpoint_left = true});
}

// Engine calls until the request is over, if every engine ends alike.
std::pair<int, Decision> calls(AttemptResult result, int status) {
  Ending e;
  e.result = result;
  e.status = status;
  e.attempts = 0;
  for (;;) {
    ++e.attempts;
    if (answered(result)) ++e.answers;
    const Decision d = decide_retry(Config{}, e);
    if (!d.retry) return {e.attempts, d};
  }
}

TEST(Retry, GoesElsewhereBeforeTheFirstByte) {
  EXPECT_TRUE(decide(AttemptResult::ConnectError).retry);
  EXPECT_TRUE(decide(AttemptResult::Reset).retry);
  EXPECT_TRUE(decide(AttemptResult::Truncated).retry) << "half a plain answer";
  for (const int status : {500, 502, 503}) {
    EXPECT_TRUE(decide(AttemptResult::ServerError, status).retry) << status;
  }
}

TEST(Retry, NeverRepeatsWhatTheClientOrTheEngineMeant) {
  EXPECT_FALSE(decide(AttemptResult::Throttled, 429).retry);
  EXPECT_FALSE(decide(AttemptResult::ClientError, 400).retry);
  for (const int status : {501, 504, 505, 529}) {
    EXPECT_FALSE(decide(AttemptResult::ServerError, status).retry) << status;
  }
  EXPECT_FALSE(decide(AttemptResult::StreamError, 200).retry);
  EXPECT_FALSE(decide(AttemptResult::FirstTokenTimeout).retry);
  EXPECT_FALSE(decide(AttemptResult::IdleTimeout).retry);
  EXPECT_FALSE(decide(AttemptResult::Aborted).retry);
  EXPECT_FALSE(decide(AttemptResult::Ok, 200).retry);
}

TEST(Retry, NeverRepeatsBytesThatWereDelivered) {
  const Decision d = decide(AttemptResult::Truncated, 200, true);
  EXPECT_FALSE(d.retry);
  EXPECT_EQ(d.reason, Reason::Delivered);
  EXPECT_EQ(d.outcome, Outcome::Truncated);
  EXPECT_EQ(d.answer, Answer::Local);
  EXPECT_FALSE(decide(AttemptResult::Reset, 200, true).retry);
}

TEST(Retry, WhateverCutsAnAnswerThatIsPartlyDeliveredItIsTruncated) {
  for (const AttemptResult cut : {AttemptResult::Truncated, AttemptResult::StreamError,
                                  AttemptResult::FirstTokenTimeout, AttemptResult::IdleTimeout}) {
    EXPECT_EQ(decide(cut, 200, true).outcome, Outcome::Truncated);
    EXPECT_NE(decide(cut, 200, false).outcome, Outcome::Truncated);
  }
}

TEST(Retry, PassesTheSecond503On) {
  const auto [count, last] = calls(AttemptResult::ServerError, 503);
  EXPECT_EQ(count, 2);
  EXPECT_EQ(last.outcome, Outcome::EngineError);
  EXPECT_EQ(last.answer, Answer::PassOn);
  EXPECT_EQ(last.reason, Reason::AnswersUsed);
}

TEST(Retry, PassesTheFirst429On) {
  const auto [count, last] = calls(AttemptResult::Throttled, 429);
  EXPECT_EQ(count, 1);
  EXPECT_EQ(last.outcome, Outcome::EngineThrottled);
  EXPECT_EQ(last.answer, Answer::PassOn);
}

TEST(Retry, TriesThreeRefusedConnections) {
  const auto [count, last] = calls(AttemptResult::ConnectError, 0);
  EXPECT_EQ(count, 3);
  EXPECT_EQ(last.outcome, Outcome::EngineUnreachable);
  EXPECT_EQ(last.answer, Answer::Local);
}

TEST(Retry, StopsWithoutBudgetOrPlace) {
  Ending e;
  e.result = AttemptResult::Reset;
  e.budget_left = false;
  EXPECT_EQ(decide_retry(Config{}, e).reason, Reason::BudgetUsed);
  e.endpoint_left = false;
  EXPECT_EQ(decide_retry(Config{}, e).reason, Reason::NowhereElse);
}

TEST(Retry, TellsEachEnding) {
  EXPECT_EQ(decide(AttemptResult::Ok).outcome, Outcome::Completed);
  EXPECT_EQ(decide(AttemptResult::ClientError, 400).outcome, Outcome::EngineClientError);
  EXPECT_EQ(decide(AttemptResult::FirstTokenTimeout).outcome, Outcome::EngineTimeout);
  EXPECT_EQ(decide(AttemptResult::IdleTimeout).outcome, Outcome::EngineTimeout);
  EXPECT_EQ(decide(AttemptResult::IdleTimeout, 200, true).outcome, Outcome::Truncated);
  EXPECT_EQ(decide(AttemptResult::StreamError, 200).outcome, Outcome::EngineError);
  EXPECT_EQ(decide(AttemptResult::StreamError, 200, true).outcome, Outcome::Truncated);
  EXPECT_EQ(decide(AttemptResult::Truncated, 200).outcome, Outcome::EngineUnreachable);
  EXPECT_EQ(decide(AttemptResult::Aborted).outcome, Outcome::ClientGone);
  EXPECT_EQ(decide(AttemptResult::Aborted).answer, Answer::None);
}

TEST(Retry, WhoIsUnfitIsLeftAndSpokenFor) {
  const auto [count, last] = calls(AttemptResult::Unfit, 404);
  EXPECT_EQ(count, 2);
  EXPECT_EQ(last.outcome, Outcome::EngineError);
  EXPECT_EQ(last.answer, Answer::Local) << "the client's key and model are not what was wrong";
}

TEST(Retry, WhatWeLackedIsOurs) {
  const Decision shortage = decide(AttemptResult::Shortage);
  EXPECT_TRUE(shortage.retry) << "another engine may have a connection kept";
  EXPECT_EQ(shortage.outcome, Outcome::GatewayLimit);
  const Decision overrun = decide(AttemptResult::Overrun, 200);
  EXPECT_FALSE(overrun.retry) << "another engine would say as much";
  EXPECT_EQ(overrun.outcome, Outcome::GatewayLimit);
  EXPECT_EQ(overrun.answer, Answer::PassOn) << "it says what to do";
}

TEST(RetryBudget, AlwaysLeavesThree) {
  RetryBudget budget{Config{}};
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(budget.left()) << i;
    budget.started(RetryBudget::Kind::Retry);
  }
  EXPECT_FALSE(budget.left());
  budget.ended(RetryBudget::Kind::Retry);
  EXPECT_TRUE(budget.left());
}

TEST(RetryBudget, GrowsWithTheRequestsUnderWay) {
  RetryBudget budget{Config{}};
  for (int i = 0; i < 100; ++i) budget.started(RetryBudget::Kind::First);
  int retries = 0;
  while (budget.left()) {
    budget.started(RetryBudget::Kind::Retry);
    ++retries;
  }
  EXPECT_EQ(retries, 25) << "a fifth of the 125 attempts";
}

}  // namespace
}  // namespace signalbox::recovery
