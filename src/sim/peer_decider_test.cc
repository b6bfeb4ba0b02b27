// SPDX-License-Identifier: Apache-2.0
// Goal: whoever decides by a peer's rule keeps that peer's books, retries as it does, and ends
// every request by the grammar. Method: a rule that does what the test says, events by hand, every
// event and action through the grammar.
#include "sim/peer_decider.h"

#include <gtest/gtest.h>

#include <optional>

#include "core/model/grammar_checker.h"
#include "sim/content.h"

namespace signalbox::sim {
namespace {

using namespace std::chrono_literals;
using model::AttemptResult;
using model::Outcome;
using Answer = model::Conclude::Answer;
using Kind = peers::Choice::Kind;

// Chooses what it is told to, and notes what it is told.
struct Script {
  peers::Traits traits;
  std::optional<peers::Choice> next;  // else the first candidate
  std::vector<peers::Slot> candidates;
  std::vector<peers::Seen> seen;
  peers::Query query;
  std::vector<std::vector<peers::Piece>> blocks;  // of the query
  int sent = 0;
  int first_tokens = 0;
  std::vector<peers::Flight> ended;
  std::vector<peers::Slot> left;
};

class Scripted : public peers::Rule {
 public:
  explicit Scripted(Script& script) : script_(script) {}
  peers::Traits traits() const override { return script_.traits; }
  peers::Choice choose(const peers::Query& query, std::span<const peers::Slot> candidates,
                       peers::Fleet fleet, Instant, Rng&) override {
    script_.query = query;
    script_.blocks.clear();
    for (const auto& chain : query.blocks) script_.blocks.emplace_back(chain.begin(), chain.end());
    script_.candidates.assign(candidates.begin(), candidates.end());
    script_.seen.assign(fleet.begin(), fleet.end());
    return script_.next.value_or(peers::Choice{Kind::Place, candidates.front(), 0});
  }
  void sent(const peers::Query&, const peers::Choice&, peers::Fleet, Instant) override {
    ++script_.sent;
  }
  void first_token(const peers::Flight&, Instant) override { ++script_.first_tokens; }
  void ended(const peers::Flight& flight, Instant) override { script_.ended.push_back(flight); }
  void left(peers::Slot slot) override { script_.left.push_back(slot); }

 private:
  Script& script_;
};

class Desk {
 public:
  explicit Desk(peers::Traits traits = {}, std::size_t endpoints = 3) {
    script.traits = traits;
    decider.emplace(std::make_unique<Scripted>(script), 1);
    fleet.models.push_back({model::ModelId(1), "m", "", 0, 0, 0, {}});
    model::Pool pool;
    pool.id = model::PoolId(1);
    pool.model = model::ModelId(1);
    fleet.pools.push_back(pool);
    fleet.routes.push_back({model::RouteId(1), "m", {{model::ModelId(1), 1}}, {}, {}, {}});
    for (std::size_t i = 0; i < endpoints; ++i) add();
    apply();
  }

  void add() {
    model::Endpoint endpoint;
    endpoint.id = model::EndpointId(++endpoints_);
    endpoint.pool = model::PoolId(1);
    endpoint.address = "10.0.0." + std::to_string(endpoints_) + ":8000";
    fleet.endpoints.push_back(endpoint);
    grammar_.declare(endpoint.id);
  }
  void remove(std::size_t index) {
    grammar_.remove(fleet.endpoints[index].id);
    fleet.endpoints.erase(fleet.endpoints.begin() + static_cast<std::ptrdiff_t>(index));
  }
  void apply() {
    actions.clear();
    decider->apply({{}, std::make_shared<model::Fleet>(fleet)}, now, actions);
    check();
  }
  void handle(model::Event event) {
    EXPECT_NE(grammar_.see(event), model::Verdict::Illegal);
    actions.clear();
    decider->handle(std::move(event), now, actions);
    check();
  }
  // Virtual time passes; the timer comes when it is due.
  void pass(Duration by) {
    const Instant until = now + by;
    while (decider->next_wake() <= until) {
      now = decider->next_wake();
      handle(model::Tick{});
      if (!actions.empty()) return;
    }
    now = until;
  }

  model::RequestId arrive(std::int64_t tokens = 600) { return arrive({{requests_ + 1, tokens}}); }
  model::RequestId arrive(std::vector<Span> history) {
    const model::RequestId id(++requests_);
    Ask ask;
    ask.session.history = std::move(history);
    decider->asked(id, ask);
    model::RequestArrived event;
    event.request = id;
    event.route = model::RouteId(1);
    handle(event);
    return id;
  }
  void end(model::RequestId id, AttemptResult result, int status = 0, bool delivered = false) {
    model::AttemptEnded event;
    event.request = id;
    event.attempt = attempt;
    event.result = result;
    event.status = status;
    event.delivered = delivered;
    event.tokens = 5;
    handle(event);
  }
  template <typename Action>
  const Action* only() const {
    return actions.size() == 1 ? std::get_if<Action>(&actions.front().action) : nullptr;
  }
  bool sent_to(std::uint32_t endpoint) const {
    const auto* action = only<model::Dispatch>();
    return action != nullptr && action->endpoint.value() == endpoint;
  }
  bool ended_as(Outcome outcome, Answer answer) const {
    const auto* action = only<model::Conclude>();
    return action != nullptr && action->outcome == outcome && action->answer == answer;
  }

  Script script;
  std::optional<PeerDecider> decider;
  model::Fleet fleet;
  flow::Actions actions;
  model::AttemptId attempt;  // of the latest dispatch
  Instant now{100s};

 private:
  void check() {
    for (const model::OwnedAction& action : actions) {
      EXPECT_EQ(grammar_.see(action.action), model::Verdict::Legal);
      if (const auto* d = std::get_if<model::Dispatch>(&action.action)) attempt = d->attempt;
    }
  }

  model::GrammarChecker grammar_;
  std::uint32_t endpoints_ = 0;
  std::uint64_t requests_ = 0;
};

peers::Traits smg() { return peers::smg_traits(); }

TEST(PeerDecider, SendsAtArrivalAndCountsUntilTheEnd) {
  Desk desk;
  desk.script.next = {Kind::Place, 1, 200};
  const auto id = desk.arrive(600);
  EXPECT_TRUE(desk.sent_to(2));
  ASSERT_EQ(desk.script.query.prompt.size(), 2u);  // cut at 512 tokens
  EXPECT_EQ(desk.script.query.prompt[0].end, 512);
  EXPECT_EQ(desk.script.query.prompt[1].end, 600);
  EXPECT_EQ(desk.decider->totals().in_flight, 1u);
  EXPECT_EQ(desk.decider->totals().waiting, 0u);

  desk.arrive(100);
  EXPECT_EQ(desk.script.seen[1].in_flight, 1);
  EXPECT_EQ(desk.script.seen[1].prefill_tokens, 400);
  desk.attempt = model::AttemptId(1);
  desk.handle(model::FirstToken{id, desk.attempt});
  EXPECT_EQ(desk.script.first_tokens, 1);
  desk.end(id, AttemptResult::Ok, 200, true);
  EXPECT_TRUE(desk.ended_as(Outcome::Completed, Answer::PassOn));
  ASSERT_EQ(desk.script.ended.size(), 1u);
  EXPECT_EQ(desk.script.ended[0].slot, 1u);
  EXPECT_EQ(desk.script.ended[0].uncached, 400);
  EXPECT_EQ(desk.script.ended[0].output, 5);
  desk.arrive(100);
  EXPECT_EQ(desk.script.seen[1].in_flight, 1);  // the second request's
  EXPECT_EQ(desk.decider->totals().outcomes[static_cast<std::size_t>(Outcome::Completed)], 1u);
}

// What the engines publish, at the cuts of the prompt: ends 10, 522, 1,010 and 1,030.
TEST(PeerDecider, WhoListensToKvEventsKnowsPromptsByBlocks) {
  peers::Traits traits;
  traits.cache_events = true;
  Desk desk(traits, 1);
  truth::EngineSpec spec;
  for (const std::int64_t size : {16, 64}) {
    spec.block_tokens = size;
    desk.decider->profiled(model::EndpointId(9), spec);
  }
  const std::vector<Span> history = {{1, 10}, {2, 1'000}, {3, 20}};
  desk.arrive(history);
  ASSERT_EQ(desk.script.blocks.size(), 2u);
  const auto expect = [&](std::size_t chain, std::int64_t size, std::vector<std::int64_t> blocks) {
    const std::vector<std::uint64_t> hashes = blocks_of(0, history, size);
    ASSERT_EQ(desk.script.blocks[chain].size(), blocks.size());
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      EXPECT_EQ(desk.script.blocks[chain][i].end, blocks[i] * size);
      EXPECT_EQ(desk.script.blocks[chain][i].hash, hashes[static_cast<std::size_t>(blocks[i] - 1)]);
    }
  };
  expect(0, 16, {32, 63, 64});
  expect(1, 64, {8, 15, 16});
}

TEST(PeerDecider, WithoutRetriesTheFirstFailureIsPassedOn) {
  Desk desk;
  auto id = desk.arrive();
  desk.end(id, AttemptResult::ServerError, 503);
  EXPECT_TRUE(desk.ended_as(Outcome::EngineError, Answer::PassOn));
  id = desk.arrive();
  desk.end(id, AttemptResult::ConnectError);
  EXPECT_TRUE(desk.ended_as(Outcome::EngineUnreachable, Answer::Local));
  EXPECT_EQ(desk.decider->totals().retries, 0u);
}

// 50 ms, 75, 112.5, ... each ± 20 %; six tries in all.
TEST(PeerDecider, SmgBacksOffFiveTimes) {
  Desk desk(smg());
  const auto id = desk.arrive();
  double delay = 0.05;
  for (int retry = 1; retry <= 5; ++retry) {
    desk.end(id, AttemptResult::Throttled, 429);
    EXPECT_TRUE(desk.actions.empty());
    EXPECT_EQ(desk.decider->totals().waiting, 1u);
    const Instant failed = desk.now;
    desk.pass(60s);
    ASSERT_NE(desk.only<model::Dispatch>(), nullptr) << retry;
    EXPECT_NEAR(to_seconds(desk.now - failed), delay, 0.2 * delay + 1e-6);
    delay *= 1.5;
  }
  desk.end(id, AttemptResult::Throttled, 429);
  EXPECT_TRUE(desk.ended_as(Outcome::EngineThrottled, Answer::PassOn));
  EXPECT_EQ(desk.decider->totals().retries, 5u);
  EXPECT_EQ(desk.script.sent, 6);
  EXPECT_EQ(desk.script.ended.size(), 6u);
}

TEST(PeerDecider, NothingIsTriedAgainBehindTheFirstByte) {
  Desk desk(smg());
  const auto id = desk.arrive();
  desk.end(id, AttemptResult::Truncated, 200, true);
  EXPECT_TRUE(desk.ended_as(Outcome::Truncated, Answer::Local));
}

TEST(PeerDecider, WhoAvoidsTriedEndpointsEndsWhenAllWereTried) {
  peers::Traits traits;
  traits.retry.most = 1'000;
  traits.retry.on_connect_error = traits.retry.avoids_tried = true;
  Desk desk(traits);
  const auto id = desk.arrive();
  EXPECT_TRUE(desk.sent_to(1));
  desk.end(id, AttemptResult::ConnectError);
  EXPECT_TRUE(desk.sent_to(2));
  desk.end(id, AttemptResult::ConnectError);
  EXPECT_TRUE(desk.sent_to(3));
  desk.end(id, AttemptResult::ConnectError);
  EXPECT_TRUE(desk.ended_as(Outcome::EngineUnreachable, Answer::Local));
}

TEST(PeerDecider, TheBreakerOpensAfterTenFailuresInARow) {
  peers::Traits traits;
  traits.breaker = {10, 60s, 3};
  Desk desk(traits, 2);
  desk.script.next = {Kind::Place, 0, 0};
  const auto fail = [&](int times) {
    for (int i = 0; i < times; ++i) desk.end(desk.arrive(), AttemptResult::ServerError, 500);
  };
  const auto candidates = [&] {
    desk.script.next.reset();
    desk.end(desk.arrive(), AttemptResult::ClientError, 400);  // blames nobody
    desk.script.next = {Kind::Place, 0, 0};
    return desk.script.candidates.size();
  };
  fail(9);
  desk.end(desk.arrive(), AttemptResult::Ok, 200);
  fail(9);
  EXPECT_EQ(candidates(), 2u);  // and its 400 ends the row
  fail(10);
  EXPECT_EQ(candidates(), 1u);
  desk.now += 60s;
  EXPECT_EQ(candidates(), 2u);
  fail(1);  // on probation one is enough
  EXPECT_EQ(candidates(), 1u);
  desk.now += 60s;
  for (int i = 0; i < 3; ++i) desk.end(desk.arrive(), AttemptResult::Ok, 200);
  fail(9);
  EXPECT_EQ(candidates(), 2u);
}

TEST(PeerDecider, ABreakerForConnectionsForgivesAnswers) {
  peers::Traits traits;
  traits.breaker = {1, 5s, 0, true};
  Desk desk(traits, 2);
  desk.end(desk.arrive(), AttemptResult::ServerError, 500);
  desk.end(desk.arrive(), AttemptResult::Throttled, 429);
  desk.end(desk.arrive(), AttemptResult::Reset);  // that was the first endpoint
  EXPECT_EQ(desk.script.candidates.size(), 2u);
  desk.arrive();
  EXPECT_TRUE(desk.sent_to(2));
  desk.now += 5s;
  desk.arrive();
  EXPECT_TRUE(desk.sent_to(1));
}

TEST(PeerDecider, WhoStreamsFromEnginesSeesTheFirstTokenOfPlainAnswers) {
  for (const bool sees : {false, true}) {
    peers::Traits traits;
    traits.sees_tokens = sees;
    Desk desk(traits);
    const auto id = desk.arrive();
    desk.handle(model::Progress{{{id, desk.attempt, 3}}});
    desk.handle(model::Progress{{{id, desk.attempt, 9}}});
    EXPECT_EQ(desk.script.first_tokens, sees ? 1 : 0);
  }
}

TEST(PeerDecider, WhoCannotBeLookedAtIsLeftOutInTime) {
  peers::Traits traits;
  traits.unready_after = 30s;
  Desk desk(traits, 1);
  desk.handle(model::EndpointUnreachable{model::EndpointId(1)});
  desk.now += 29s;
  desk.handle(model::EndpointUnreachable{model::EndpointId(1)});
  desk.arrive();
  EXPECT_TRUE(desk.sent_to(1));
  desk.now += 1s;
  desk.arrive();
  EXPECT_TRUE(desk.ended_as(Outcome::NoEndpoint, Answer::Local));
  desk.handle(model::EndpointObserved{model::EndpointId(1), {}});
  desk.arrive();
  EXPECT_TRUE(desk.sent_to(1));
}

TEST(PeerDecider, AClientThatLeavesAborts) {
  Desk desk;
  const auto id = desk.arrive();
  desk.handle(model::ClientGone{id});
  ASSERT_EQ(desk.actions.size(), 2u);
  EXPECT_NE(std::get_if<model::Abort>(&desk.actions[0].action), nullptr);
  const auto* end = std::get_if<model::Conclude>(&desk.actions[1].action);
  ASSERT_NE(end, nullptr);
  EXPECT_EQ(end->outcome, Outcome::ClientGone);
  EXPECT_EQ(end->answer, Answer::None);
  EXPECT_EQ(desk.script.ended.size(), 1u);
  desk.end(id, AttemptResult::Aborted);
  EXPECT_TRUE(desk.actions.empty());
  EXPECT_EQ(desk.decider->totals().stale_events, 1u);
  desk.arrive();
  EXPECT_EQ(desk.script.seen[0].in_flight, 0);
  EXPECT_EQ(desk.script.seen[0].prefill_tokens, 0);
}

TEST(PeerDecider, AnEndpointThatLeavesTakesItsBooksAlong) {
  Desk desk;
  const auto id = desk.arrive();
  desk.remove(0);
  desk.apply();
  EXPECT_EQ(desk.script.left, std::vector<peers::Slot>{0});
  EXPECT_EQ(desk.script.ended.size(), 1u);
  desk.add();
  desk.apply();  // takes the free slot
  desk.script.next = {Kind::Place, 0, 0};
  desk.arrive();
  EXPECT_TRUE(desk.sent_to(4));
  EXPECT_EQ(desk.script.seen[0].in_flight, 0);
  desk.attempt = model::AttemptId(1);
  desk.end(id, AttemptResult::Ok, 200);  // ran on where nobody counts
  EXPECT_TRUE(desk.ended_as(Outcome::Completed, Answer::PassOn));
  EXPECT_EQ(desk.script.ended.size(), 1u);
  desk.arrive();
  EXPECT_EQ(desk.script.seen[0].in_flight, 1);
}

TEST(PeerDecider, ARuleThatWaitsIsAskedAgainInOrder) {
  Desk desk;
  const auto runs = desk.arrive();
  desk.script.next = {Kind::Wait, 0, 0};
  const auto first = desk.arrive();
  const auto second = desk.arrive();
  const auto leaves = desk.arrive();
  EXPECT_EQ(desk.decider->totals().waiting, 3u);
  desk.handle(model::ClientGone{leaves});
  EXPECT_TRUE(desk.ended_as(Outcome::ClientGone, Answer::None));
  desk.script.next.reset();
  desk.end(runs, AttemptResult::Ok, 200);
  ASSERT_EQ(desk.actions.size(), 3u);
  EXPECT_EQ(std::get<model::Dispatch>(desk.actions[1].action).request, first);
  EXPECT_EQ(std::get<model::Dispatch>(desk.actions[2].action).request, second);
  EXPECT_EQ(desk.decider->totals().waiting, 0u);
}

TEST(PeerDecider, ARefusalIsAFullQueueWithRetryAfter) {
  Desk desk;
  desk.script.next = {Kind::Refuse, 0, 0};
  desk.arrive();
  EXPECT_TRUE(desk.ended_as(Outcome::QueueFull, Answer::Local));
  EXPECT_GT(desk.only<model::Conclude>()->retry_after, Duration::zero());
}

TEST(PeerDecider, ADrainEndsEverybody) {
  Desk desk(smg());
  desk.arrive();
  const auto waits = desk.arrive();
  desk.end(waits, AttemptResult::ServerError, 500);  // in its back-off
  desk.handle(model::DrainOver{});
  EXPECT_EQ(desk.actions.size(), 3u);  // an abort and two ends
  EXPECT_EQ(desk.decider->totals().in_flight, 0u);
  EXPECT_EQ(desk.decider->next_wake(), kNever);
  desk.arrive();
  EXPECT_TRUE(desk.ended_as(Outcome::Draining, Answer::Local));
}

}  // namespace
}  // namespace signalbox::sim
