// SPDX-License-Identifier: Apache-2.0
// Goal: requests board passes together, each on a rank of its own, and nobody is left standing.
// Method: stories told to a core by hand; engines of four ranks whose pass takes 8,192 tokens each.
#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <set>
#include <utility>

#include "base/rng.h"
#include "core/flow/desk_for_test.inc"

namespace signalbox::flow {
namespace {

class Shuttles : public testing::Test {
 protected:
  static constexpr int kRanks = 4;

  void start(int engines) {
    desk_.emplace(engines * kRanks, 100);
    desk_->fleet.pools[0].dispatch = model::DispatchMode::Shuttle;
    for (std::size_t i = 0; i < desk_->fleet.endpoints.size(); ++i) {
      model::Endpoint& e = desk_->fleet.endpoints[i];
      e.address = "10.0.0." + std::to_string(i / kRanks) + ":8000";
      e.rank = static_cast<int>(i % kRanks);
    }
  }
  // Four bytes are about a token.
  model::RequestId arrive(std::int64_t tokens) {
    model::RequestArrived r = desk_->request();
    r.prompt.bytes = 4 * tokens;
    return desk_->arrive(r);
  }
  std::vector<model::RequestId> arrive(int count, std::int64_t tokens) {
    std::vector<model::RequestId> ids;
    for (int i = 0; i < count; ++i) ids.push_back(arrive(tokens));
    return ids;
  }
  // Its prompt has an identity, so whoever computed it holds it.
  model::RequestArrived with_prefix() const {
    model::RequestArrived r = desk_->request();
    r.prompt.bytes = 16'000;
    r.prompt.chain = {{11, 8'000}, {12, 16'000}};
    return r;
  }
  int engine_of(model::RequestId id) const {
    return static_cast<int>(desk_->place(id).value() - 1) / kRanks;
  }
  std::size_t sent(const std::vector<model::RequestId>& ids) const {
    return static_cast<std::size_t>(
        std::ranges::count_if(ids, [&](model::RequestId id) { return bool(desk_->place(id)); }));
  }
  std::size_t places(const std::vector<model::RequestId>& ids) const {
    std::set<model::EndpointId> seen;
    for (const model::RequestId id : ids) {
      if (desk_->place(id)) seen.insert(desk_->place(id));
    }
    return seen.size();
  }
  void finish_all(const std::vector<model::RequestId>& ids) { desk_->finish_all(ids); }

  std::optional<Desk> desk_;
};

TEST_F(Shuttles, ThoseWhoComeDuringAPassBoardTheNextTogether) {
  start(1);
  const auto first = arrive(1000);
  EXPECT_TRUE(desk_->place(first)) << "nothing is under way";
  const auto ids = arrive(4, 1000);
  EXPECT_EQ(sent(ids), 0u);
  EXPECT_EQ(desk_->core().totals().waiting, 4u);
  desk_->now += 300ms;
  desk_->first_token(first);
  EXPECT_EQ(sent(ids), 4u);
  EXPECT_EQ(places(ids), 4u) << "a rank each";
  desk_->complete(first);
  finish_all(ids);
}

TEST_F(Shuttles, AnotherEngineTakesThemWhileOneIsBusy) {
  start(2);
  const auto ids = arrive(2, 8000);
  desk_->wait(600ms);
  EXPECT_EQ(sent(ids), 2u);
  EXPECT_NE(engine_of(ids[0]), engine_of(ids[1]));
  finish_all(ids);
}

TEST_F(Shuttles, APassWhoseFirstTokenNeverComesIsGivenUp) {
  start(1);
  const auto stuck = arrive(1000), next = arrive(1000);
  EXPECT_TRUE(desk_->waits(next));
  desk_->wait(20s);
  EXPECT_TRUE(desk_->place(next));
  finish_all({stuck, next});
}

// While the others are busy an open gate says little for an engine: it may have been given up.
TEST_F(Shuttles, WhoeverComesLaterAvoidsAnEngineThatIsSilent) {
  start(3);
  std::deque<std::pair<model::RequestId, int>> aboard;  // and the step in which it was sent
  std::vector<model::RequestId> waiting, stuck;
  for (int step = 0; step < 300; ++step) {
    waiting.push_back(arrive(20));
    std::erase_if(waiting, [&](model::RequestId id) {
      if (!desk_->place(id)) return false;
      if (step > 60 && engine_of(id) == 0) stuck.push_back(id);
      else aboard.emplace_back(id, step);
      return true;
    });
    for (; !aboard.empty() && aboard.front().second + 3 <= step; aboard.pop_front()) {
      desk_->finish(aboard.front().first);
    }
    desk_->wait(20ms);
  }
  EXPECT_LE(stuck.size(), 5u);
  for (const auto& [id, step] : aboard) stuck.push_back(id);
  stuck.insert(stuck.end(), waiting.begin(), waiting.end());
  finish_all(stuck);
}

TEST_F(Shuttles, ALongPromptDoesNotKeepTheGateShut) {
  start(1);
  const auto huge = arrive(80'000);
  const auto next = arrive(1000);
  EXPECT_TRUE(desk_->place(huge));
  desk_->wait(20s);
  EXPECT_TRUE(desk_->place(next)) << "it boards one of the ten passes";
  EXPECT_NE(desk_->place(next), desk_->place(huge));
  finish_all({huge, next});
}

TEST_F(Shuttles, WhatIsNotStreamedOpensTheGateWhenItIsPredictedTo) {
  start(1);
  model::RequestArrived plain = desk_->request();
  plain.stream = false;
  const auto silent = desk_->arrive(plain), next = arrive(1000);
  EXPECT_TRUE(desk_->place(silent));
  desk_->wait(5s);
  EXPECT_TRUE(desk_->place(next));
  desk_->complete(silent);
  finish_all({next});
}

TEST_F(Shuttles, TheGateOpensWhenAllWhoBoardedHaveGone) {
  start(1);
  const auto first = arrive(1000), second = arrive(1000), third = arrive(1000);
  desk_->leave(second);
  EXPECT_TRUE(desk_->waits(third));
  desk_->leave(first);
  desk_->wait(500ms);
  EXPECT_TRUE(desk_->place(third));
  finish_all({third});
}

TEST_F(Shuttles, ARetryDepartsAtOnce) {
  start(2);
  const auto first = arrive(1000);
  desk_->wait(2s);
  const auto ids = arrive(6, 1000);
  desk_->fail(first, model::AttemptResult::ConnectError);
  EXPECT_TRUE(desk_->place(first));
  auto all = ids;
  all.push_back(first);
  finish_all(all);
}

TEST_F(Shuttles, WhoIsHeldGoesOnWhenTheirEngineLeavesOrTheModeChanges) {
  start(2);
  auto ids = arrive(12, 4000);
  for (int i = 1; i <= kRanks; ++i) {
    desk_->remove_endpoint(model::EndpointId(static_cast<std::uint32_t>(i)));
  }
  desk_->apply();
  desk_->wait(30s);
  EXPECT_EQ(sent(ids), ids.size()) << "though nobody hears from passes";
  const auto more = arrive(4, 4000);
  EXPECT_LT(sent(more), 4u);
  desk_->fleet.pools[0].dispatch = model::DispatchMode::Immediate;
  desk_->apply();
  desk_->wait(1s);
  EXPECT_EQ(sent(more), 4u);
  for (const model::RequestId id : ids) {
    if (desk_->place(id).value() <= kRanks) desk_->fail(id, model::AttemptResult::Truncated);
  }
  ids.insert(ids.end(), more.begin(), more.end());
  finish_all(ids);
}

TEST_F(Shuttles, ThePrefixDecidesTheRank) {
  start(1);
  desk_->config.dispatch.hold_max = 0ms;
  const model::RequestArrived r = with_prefix();
  const auto first = desk_->arrive(r);
  desk_->first_token(first);
  desk_->complete(first);
  desk_->wait(1s);
  const auto blocker = arrive(500);
  const auto same = desk_->arrive(r);
  desk_->wait(400ms);
  desk_->first_token(blocker);
  EXPECT_EQ(desk_->place(same), desk_->place(first));
  desk_->complete(blocker);
  finish_all({same});
}

TEST_F(Shuttles, NobodyWaitsForAHomeWhereNobodyIs) {
  start(2);
  desk_->config.dispatch.hold_max = 0ms;
  const model::RequestArrived r = with_prefix();
  const auto first = desk_->arrive(r);
  desk_->first_token(first);
  desk_->complete(first);
  const std::uint32_t home = static_cast<std::uint32_t>(engine_of(first)) * kRanks;
  for (std::uint32_t i = 1; i <= kRanks; ++i) {
    desk_->tell(model::EndpointUnreachable{model::EndpointId(home + i), true});
  }
  const auto next = desk_->arrive(r);
  desk_->wait(1s);
  ASSERT_TRUE(desk_->place(next));
  EXPECT_NE(engine_of(next), engine_of(first));
  finish_all({next});
}

TEST_F(Shuttles, WhatSeemsTooLongForAnyEngineIsForTheEngineToRefuse) {
  start(1);
  const auto huge = arrive(5'000'000);
  EXPECT_TRUE(desk_->place(huge));
  desk_->fail(huge, model::AttemptResult::ClientError);
  EXPECT_TRUE(desk_->core().idle());
}

TEST_F(Shuttles, WhenNobodyIsThereTheLastResortIsTriedAtOnce) {
  start(1);
  const auto first = arrive(1000), held = arrive(1000);
  EXPECT_TRUE(desk_->waits(held));
  for (std::uint32_t i = 1; i <= kRanks; ++i) {
    desk_->tell(model::EndpointUnreachable{model::EndpointId(i), true});
  }
  const auto next = arrive(1000);
  desk_->wait(1s);
  for (const model::RequestId id : {first, held, next}) EXPECT_TRUE(desk_->place(id));
  desk_->refuse_all({first, held, next}, 6s);
  for (const model::RequestId id : {first, held, next}) EXPECT_TRUE(desk_->outcome(id));
  EXPECT_TRUE(desk_->core().idle());
}

// A queue whose front has no place, because all are full of those held behind it, starved.
TEST_F(Shuttles, AQueueOfAnyLengthIsBoardedFromItsFront) {
  start(1);
  desk_->fleet.pools[0].concurrency_max = 8;
  const auto ids = arrive(400, 500);
  std::size_t done = 0;
  for (int round = 0; round < 2000 && done < ids.size(); ++round) {
    for (const model::RequestId id : ids) {
      if (!desk_->place(id) || desk_->outcome(id)) continue;
      desk_->first_token(id);
      desk_->complete(id);
      ++done;
    }
    desk_->wait(100ms);
  }
  EXPECT_EQ(done, ids.size());
  EXPECT_TRUE(desk_->core().idle());
}

TEST_F(Shuttles, ADepartureSaysWithHowMany) {
  start(1);
  const auto first = arrive(1000);
  const auto ids = arrive(4, 1000);
  desk_->now += 300ms;
  desk_->first_token(first);
  const auto records = desk_->core().decisions().of(ids[2]);
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0]->held, model::DispatchMode::Shuttle);
  EXPECT_EQ(records[1]->boarded, 4);
  EXPECT_GT(records[1]->pass_seconds, 0);
  desk_->complete(first);
  finish_all(ids);
}

TEST_F(Shuttles, ThousandsOfOrdersLeaveNobodyBehind) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Rng rng(seed, "shuttle");
    start(1 + static_cast<int>(rng.below(3)));
    std::vector<model::RequestId> ids;
    for (int i = 0; i < 150; ++i) {
      if (rng.chance(0.6)) ids.push_back(arrive(static_cast<std::int64_t>(50 + rng.below(20'000))));
      if (!ids.empty()) {
        const model::RequestId id = ids[rng.below(ids.size())];
        if (desk_->place(id) && !desk_->outcome(id)) {
          if (rng.chance(0.4)) desk_->first_token(id);
          else if (rng.chance(0.3)) desk_->complete(id);
          else if (rng.chance(0.1)) desk_->fail(id, model::AttemptResult::Reset);
        }
        if (rng.chance(0.03) && !desk_->outcome(id)) desk_->leave(id);
      }
      desk_->wait(std::chrono::milliseconds(rng.below(120)));
    }
    finish_all(ids);
  }
}

// Engines that compute what is there when a pass begins, with a barrier or each rank for itself.
class AutoMode : public Shuttles {
 protected:
  void start_auto(int engines) {
    start(engines);
    desk_->fleet.pools[0].dispatch = model::DispatchMode::Auto;
  }
  model::DispatchMode acting() { return desk_->core().dispatch(model::PoolId(1)).mode; }

  // Twenty requests come in a second. With a barrier all that were sent before a pass are computed
  // by its end, 400 ms later; without, each takes 100 to 400 ms.
  void serve(Duration duration, bool barrier) {
    struct Running {
      Instant begins{};
      Instant ends{};
    };
    std::map<model::RequestId, Running> here;
    Rng rng(3, "auto");
    const Instant over = desk_->now + duration;
    for (Instant pass = desk_->now; desk_->now < over; desk_->wait(5ms)) {
      if (rng.chance(0.1)) here[arrive(1'000)] = {};
      if (desk_->now - pass >= 400ms) pass = desk_->now;
      for (auto& [id, running] : here) {
        if (!desk_->place(id) || running.ends > Instant{}) continue;
        running = {desk_->now, desk_->now + from_seconds(rng.uniform(0.1, 0.4))};
      }
      std::erase_if(here, [&](const auto& entry) {
        const auto& [id, running] = entry;
        if (!desk_->place(id)) return false;
        if (barrier ? pass < desk_->now || running.begins == desk_->now : desk_->now < running.ends)
          return false;
        desk_->finish(id);
        return true;
      });
    }
    std::vector<model::RequestId> rest;
    for (const auto& [id, running] : here) rest.push_back(id);
    desk_->finish_all(rest);
  }
};

TEST_F(AutoMode, HoldsOnceABarrierIsSeenAndLetsGoWhenItIsGone) {
  start_auto(2);
  EXPECT_EQ(acting(), model::DispatchMode::Immediate);
  EXPECT_TRUE(desk_->core().dispatch(model::PoolId(1)).automatic);
  serve(20s, true);
  EXPECT_EQ(acting(), model::DispatchMode::Shuttle);
  serve(60s, false);
  EXPECT_EQ(acting(), model::DispatchMode::Immediate);
  EXPECT_TRUE(desk_->core().idle());
  EXPECT_GT(desk_->core().next_wake(), desk_->now) << "nothing is left to do";
}

TEST_F(AutoMode, HoldsNothingForEnginesOfOneRank) {
  start_auto(2);
  for (std::size_t i = 0; i < desk_->fleet.endpoints.size(); ++i) {
    desk_->fleet.endpoints[i].address = "10.0.1." + std::to_string(i) + ":8000";
  }
  serve(20s, true);
  EXPECT_EQ(acting(), model::DispatchMode::Immediate);
}

TEST_F(AutoMode, AReloadToOrFromItServesThoseWhoAreHeld) {
  start(2);
  desk_->apply();
  std::vector<model::RequestId> ids = arrive(40, 4'000);
  desk_->fleet.pools[0].dispatch = model::DispatchMode::Auto;
  desk_->apply();
  EXPECT_EQ(acting(), model::DispatchMode::Immediate);
  desk_->wait(1s);
  EXPECT_EQ(sent(ids), ids.size()) << "at once";
  desk_->fleet.pools[0].dispatch = model::DispatchMode::Shuttle;
  desk_->apply();
  desk_->finish_all(ids);
  EXPECT_TRUE(desk_->core().idle());
}

}  // namespace
}  // namespace signalbox::flow
