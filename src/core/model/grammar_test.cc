// SPDX-License-Identifier: Apache-2.0
// Goal: every cell of the three tables, and whole conversations with every legal disorder. Method:
// the tables once more as text (`.` legal, d, s, x), and hand-written conversations.
#include "core/model/grammar.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/model/grammar_checker.h"

namespace signalbox::model {
namespace {

// The letter of each verdict, for one machine that has come along `way`, on `signal`.
template <typename Machine>
char letter(const std::vector<typename Machine::Signal>& way, typename Machine::Signal signal) {
  Machine machine;
  for (const auto s : way) EXPECT_EQ(machine.take(s), Verdict::Legal);
  const auto before = machine.state();
  const Verdict verdict = machine.take(signal);
  if (verdict != Verdict::Legal) {
    EXPECT_EQ(machine.state(), before);
  }
  return ".dsx"[static_cast<int>(verdict)];
}

template <typename Machine>
std::vector<std::string> table(const std::vector<std::vector<typename Machine::Signal>>& ways,
                               int signals) {
  std::vector<std::string> rows;
  for (int s = 0; s < signals; ++s) {
    std::string row;
    for (const auto& way : ways) {
      row += letter<Machine>(way, static_cast<typename Machine::Signal>(s));
    }
    rows.push_back(row);
  }
  return rows;
}

TEST(Grammar, DecidesEveryEventOfARequest) {
  using S = RequestGrammar::Signal;
  const auto rows = table<RequestGrammar>(
      {{},
       {S::Arrived},
       {S::Arrived, S::Dispatched},
       {S::Arrived, S::Dispatched, S::ClientGone},
       {S::Arrived, S::ClientGone},
       {S::Arrived, S::Concluded}},
      6);
  EXPECT_EQ(rows, (std::vector<std::string>{".xxxxx", "x..dds", "x.xxxx", "xx..xx", "x....s",
                                            "x.xx.x"}));
}

TEST(Grammar, DecidesEveryEventOfAnAttempt) {
  using S = AttemptGrammar::Signal;
  const auto rows = table<AttemptGrammar>({{},
                                           {S::Dispatched},
                                           {S::Dispatched, S::FirstToken},
                                           {S::Dispatched, S::Aborted},
                                           {S::Dispatched, S::Ended}},
                                          5);
  EXPECT_EQ(rows, (std::vector<std::string>{".xxxx", "x.dss", "x..ss", "x..dx", "x...d"}));
}

TEST(Grammar, DecidesEveryEventOfAnEndpoint) {
  using S = EndpointGrammar::Signal;
  const auto rows = table<EndpointGrammar>({{},
                                            {S::Declared},
                                            {S::Declared, S::Observed},
                                            {S::Declared, S::Unreachable},
                                            {S::Declared, S::Removed}},
                                           5);
  EXPECT_EQ(rows, (std::vector<std::string>{".dddx", "x...s", "x...s", "x...x", "x...d"}));
}

TEST(Grammar, TakesAByteOfState) {
  EXPECT_EQ(sizeof(RequestGrammar), 1u);
  EXPECT_EQ(sizeof(AttemptGrammar), 1u);
  EXPECT_EQ(sizeof(EndpointGrammar), 1u);
}

const RequestId kRequest(1);
const AttemptId kFirst(1), kSecond(2);
const EndpointId kEndpoint(1);

struct Conversation {
  Conversation() { checker.declare(kEndpoint); }
  Verdict event(Event e) { return checker.see(e); }
  Verdict action(Action a) { return checker.see(a); }
  void arrive() {
    RequestArrived e;
    e.request = kRequest;
    ASSERT_EQ(event(e), Verdict::Legal);
  }
  void dispatch(AttemptId attempt) {
    ASSERT_EQ(action(Dispatch{kRequest, attempt, kEndpoint, 0, {}}), Verdict::Legal);
  }
  Verdict end(AttemptId attempt) {
    AttemptEnded e;
    e.request = kRequest;
    e.attempt = attempt;
    return event(e);
  }
  Verdict conclude() {
    Conclude a;
    a.request = kRequest;
    return action(a);
  }
  GrammarChecker checker;
};

TEST(GrammarChecker, AcceptsARetryAndIgnoresTheLateNewsOfTheFirstAttempt) {
  Conversation c;
  c.arrive();
  c.dispatch(kFirst);
  EXPECT_EQ(c.end(kFirst), Verdict::Legal);
  c.dispatch(kSecond);
  EXPECT_EQ(c.end(kFirst), Verdict::Duplicate);
  EXPECT_EQ(c.event(FirstToken{kRequest, kFirst}), Verdict::Stale);
  EXPECT_EQ(c.event(Progress{{{kRequest, kSecond, 1}, {kRequest, kFirst, 1}}}), Verdict::Stale);
  EXPECT_EQ(c.event(FirstToken{kRequest, kSecond}), Verdict::Legal);
  EXPECT_EQ(c.event(FirstToken{kRequest, kSecond}), Verdict::Duplicate);
  EXPECT_EQ(c.end(kSecond), Verdict::Legal);
  EXPECT_EQ(c.conclude(), Verdict::Legal);
  EXPECT_EQ(c.checker.requests_open(), 0u);
  EXPECT_EQ(c.end(kSecond), Verdict::Stale);
  EXPECT_EQ(c.event(ClientGone{kRequest}), Verdict::Stale);
  EXPECT_EQ(c.checker.count(Verdict::Illegal), 0u);
}

TEST(GrammarChecker, AcceptsAClientThatLeavesWhileItsAttemptRuns) {
  Conversation c;
  c.arrive();
  c.dispatch(kFirst);
  EXPECT_EQ(c.event(ClientGone{kRequest}), Verdict::Legal);
  EXPECT_EQ(c.event(ClientGone{kRequest}), Verdict::Duplicate);
  EXPECT_EQ(c.action(Abort{kRequest, kFirst}), Verdict::Legal);
  EXPECT_EQ(c.conclude(), Verdict::Legal) << "the end of an aborted attempt may stay away";
  EXPECT_EQ(c.end(kFirst), Verdict::Stale);
}

TEST(GrammarChecker, RefusesToLeaveAnEngineRunningForNobody) {
  Conversation c;
  c.arrive();
  c.dispatch(kFirst);
  c.event(ClientGone{kRequest});
  EXPECT_EQ(c.conclude(), Verdict::Illegal);
}

TEST(GrammarChecker, RefusesTwoEnginesForOneRequest) {
  Conversation c;
  c.arrive();
  c.dispatch(kFirst);
  EXPECT_EQ(c.action(Dispatch{kRequest, kSecond, kEndpoint, 0, {}}), Verdict::Illegal);
}

TEST(GrammarChecker, RefusesTwoOutcomesAndActionsOnForgottenRequests) {
  Conversation c;
  c.arrive();
  EXPECT_EQ(c.conclude(), Verdict::Legal);
  EXPECT_EQ(c.conclude(), Verdict::Illegal);
  EXPECT_EQ(c.action(Dispatch{kRequest, kFirst, kEndpoint, 0, {}}), Verdict::Illegal);
  EXPECT_EQ(c.action(Abort{kRequest, kFirst}), Verdict::Illegal);
}

TEST(GrammarChecker, RefusesNewsOfAttemptsThatWereNeverSent) {
  Conversation c;
  c.arrive();
  EXPECT_EQ(c.end(kFirst), Verdict::Illegal);
  EXPECT_EQ(c.event(FirstToken{kRequest, kFirst}), Verdict::Illegal);
}

TEST(GrammarChecker, TellsALateLookFromALookAtNobody) {
  Conversation c;
  EXPECT_EQ(c.event(EndpointObserved{kEndpoint, {}}), Verdict::Legal);
  EXPECT_EQ(c.event(EndpointUnreachable{kEndpoint}), Verdict::Legal);
  c.checker.remove(kEndpoint);
  EXPECT_EQ(c.event(EndpointObserved{kEndpoint, {}}), Verdict::Stale);
  EXPECT_EQ(c.event(EndpointUnreachable{EndpointId(7)}), Verdict::Illegal);
  c.arrive();
  EXPECT_EQ(c.action(Dispatch{kRequest, kFirst, kEndpoint, 0, {}}), Verdict::Illegal);
}

TEST(GrammarChecker, TakesASecondDrainForADuplicate) {
  Conversation c;
  EXPECT_EQ(c.event(DrainOver{}), Verdict::Legal);
  EXPECT_EQ(c.event(DrainOver{}), Verdict::Duplicate);
  EXPECT_EQ(c.event(Tick{}), Verdict::Legal);
}

}  // namespace
}  // namespace signalbox::model
