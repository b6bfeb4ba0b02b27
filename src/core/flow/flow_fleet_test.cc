// SPDX-License-Identifier: Apache-2.0
// Goal: the fleet decides who may serve what, and may change under requests in flight. Method:
// scenarios by hand.
#include "core/flow/desk_for_test.inc"

namespace signalbox::flow {
namespace {

// A second model in a pool of its own, with one endpoint.
model::EndpointId add_model(Desk& desk) {
  desk.fleet.models.push_back({model::ModelId(2), "n", "", 8, 0, 100'000, {}});
  model::Pool pool = desk.fleet.pools[0];
  pool.id = model::PoolId(2);
  pool.name = "q";
  pool.model = model::ModelId(2);
  desk.fleet.pools.push_back(pool);
  return desk.add_endpoint(2);
}

TEST(Fleet, WhatRunsOnAnEndpointThatLeftRunsOn) {
  Desk desk(2);
  const auto r = desk.arrive();
  const auto place = desk.place(r);
  desk.remove_endpoint(place);
  desk.apply();
  EXPECT_TRUE(desk.actions().empty()) << "nobody is cut off";
  desk.first_token(r);
  desk.complete(r);
  EXPECT_EQ(desk.outcome(r), Outcome::Completed);
  EXPECT_TRUE(desk.core().idle());
  EXPECT_NE(desk.place(desk.arrive()), place) << "nobody goes there any more";
}

TEST(Fleet, WhatFailsOnAnEndpointThatLeftIsTriedElsewhere) {
  Desk desk(2);
  const auto r = desk.arrive();
  const auto place = desk.place(r);
  desk.remove_endpoint(place);
  desk.apply();
  desk.fail(r, AttemptResult::Reset);
  EXPECT_TRUE(desk.place(r) && desk.place(r) != place);
}

TEST(Fleet, AnEndpointThatJoinsServesThoseWhoWait) {
  Desk desk(1, 1);
  desk.arrive();
  const auto b = desk.arrive();
  EXPECT_TRUE(desk.waits(b));
  const auto fresh = desk.add_endpoint(1);
  desk.apply();
  desk.wait(0s);
  EXPECT_EQ(desk.place(b), fresh);
}

TEST(Fleet, WhoWaitsForAModelThatLeftIsTold) {
  Desk desk(1, 1);
  const auto a = desk.arrive(), b = desk.arrive();
  desk.remove_endpoint(model::EndpointId(1));
  desk.apply();
  EXPECT_EQ(desk.outcome(b), Outcome::NoEndpoint);
  EXPECT_GT(desk.conclusion(b).retry_after, 0s);
  EXPECT_EQ(desk.outcome(desk.arrive()), Outcome::NoEndpoint);
  desk.complete(a);
  EXPECT_TRUE(desk.core().idle());
}

TEST(Fleet, APoolMayLeaveWithRequestsInFlight) {
  Desk desk(1);
  add_model(desk);
  const auto r = desk.arrive();
  desk.remove_endpoint(model::EndpointId(1));
  desk.fleet.pools.erase(desk.fleet.pools.begin());
  desk.apply();
  desk.first_token(r);
  desk.complete(r);
  EXPECT_EQ(desk.outcome(r), Outcome::Completed);
  EXPECT_TRUE(desk.core().idle());
}

TEST(Fleet, LooksAtEndpointsThatLeftAreStale) {
  Desk desk(2);
  desk.apply();
  desk.remove_endpoint(model::EndpointId(2));
  desk.apply();
  desk.observe(model::EndpointId(2));
  desk.tell(model::EndpointUnreachable{model::EndpointId(2)});
  EXPECT_EQ(desk.core().totals().stale_events, 2u);
  EXPECT_EQ(desk.core().endpoints(model::PoolId(1), desk.now).size(), 1u);
}

TEST(Fleet, AnEndpointThatNothingIsSentToIsIdleUpToItsLastLook) {
  Desk desk(2);
  desk.apply();
  const Instant begun = desk.now;
  const auto idle = [&desk](std::uint32_t id) {
    return desk.core().ledger().endpoint(model::EndpointId(id)).idle.engine_time;
  };
  desk.now = begun + 7s;
  desk.observe(model::EndpointId(1));
  desk.tell(model::EndpointUnreachable{model::EndpointId(2)});
  EXPECT_EQ(idle(1), 7s);
  EXPECT_EQ(idle(2), 7s) << "an engine that does not answer is paid for as well";
  EXPECT_EQ(desk.core().ledger().all().idle.engine_time, 14s);
}

TEST(Fleet, TheSameFleetAgainChangesNothing) {
  Desk desk(2, 1);
  const auto a = desk.arrive();
  desk.apply();
  desk.apply();
  EXPECT_TRUE(desk.actions().empty());
  const auto b = desk.arrive();
  EXPECT_NE(desk.place(a), desk.place(b)) << "its load is still known";
  EXPECT_TRUE(desk.waits(desk.arrive()));
}

TEST(Fleet, SlotsThatTheEngineTellsAreTheLimitWhenNoneIsDeclared) {
  Desk desk(1, 0);
  model::EngineState state;
  state.slots = 2;
  desk.observe(model::EndpointId(1), state);
  desk.arrive();
  desk.arrive();
  EXPECT_TRUE(desk.waits(desk.arrive()));
}

TEST(Fleet, AReloadKeepsTheSlotsThatTheEngineTold) {
  Desk desk(1, 0);
  model::EngineState state;
  state.slots = 2;
  desk.observe(model::EndpointId(1), state);
  desk.arrive();
  desk.arrive();
  desk.apply();
  EXPECT_TRUE(desk.waits(desk.arrive()));
}

TEST(Fleet, SixtyFourAtOnceWhenNobodyTells) {
  Desk desk(1, 0);
  for (int i = 0; i < 64; ++i) EXPECT_TRUE(desk.place(desk.arrive()));
  EXPECT_TRUE(desk.waits(desk.arrive()));
}

TEST(Fleet, ANewConfigurationHoldsFromTheNextEventOn) {
  Desk desk(2, 1);
  const auto standing = [&](model::EndpointId id) {
    for (const EndpointView& view : desk.core().endpoints(model::PoolId(1), desk.now)) {
      if (view.id == id) return view.standing;
    }
    return recovery::Standing::In;
  };
  const auto fail_one = [&] {
    const auto request = desk.arrive();
    const model::EndpointId at = desk.place(request);
    model::AttemptEnded end = desk.ending(request, AttemptResult::Truncated);
    end.delivered = true;
    desk.tell(end);
    return at;
  };
  EXPECT_EQ(standing(fail_one()), recovery::Standing::In);
  desk.config.recovery.failures_in_a_row = 1;
  desk.config.recovery.retries_min = 0;
  desk.config.recovery.retry_share = 0;
  desk.apply();
  EXPECT_EQ(standing(fail_one()), recovery::Standing::Out);
  const auto last = desk.arrive();
  desk.fail(last, AttemptResult::Reset);
  EXPECT_TRUE(desk.outcome(last)) << "nothing is tried again without a budget";
}

TEST(ClientLeft, WhatAnEngineFinishesForNobodyIsAccountedAndTeaches) {
  Desk desk(1, 4);
  const auto a = desk.arrive();
  model::AttemptEnded end = desk.ending(a, AttemptResult::Ok);
  end.usage = {500, 0, 20};
  end.client_left = true;
  desk.tell(end);
  EXPECT_EQ(desk.outcome(a), Outcome::ClientGone);
  EXPECT_EQ(desk.conclusion(a).answer, Answer::None);
  EXPECT_EQ(desk.core().ledger().all().completion_tokens, 20);
  const auto b = desk.arrive();
  end = desk.ending(b, AttemptResult::Truncated);
  end.client_left = true;
  desk.tell(end);
  EXPECT_EQ(desk.outcome(b), Outcome::ClientGone) << "nobody is there to try again for";
  EXPECT_GT(desk.core().endpoints(model::PoolId(1), desk.now)[0].failure_risk, 0);
  EXPECT_TRUE(desk.core().idle());
}

TEST(DrainOver, EveryRequestInFlightGetsItsOutcome) {
  Desk desk(1, 1);
  const auto running = desk.arrive(), waiting = desk.arrive();
  desk.first_token(running);
  desk.tell(model::DrainOver{});
  const auto late = desk.arrive();
  EXPECT_TRUE(desk.aborted(running)) << "its engine would go on for nobody";
  for (const auto id : {running, waiting, late}) {
    EXPECT_EQ(desk.outcome(id), Outcome::Draining);
    EXPECT_EQ(desk.conclusion(id).answer, Answer::Local);
    EXPECT_GT(desk.conclusion(id).retry_after, 0s);
  }
  EXPECT_TRUE(desk.core().idle());
}

TEST(DrainOver, ManyGoHomeInSlices) {
  Desk desk(1, 40);
  std::vector<model::RequestId> all;
  for (int i = 0; i < 100; ++i) all.push_back(desk.arrive());
  desk.tell(model::DrainOver{});
  EXPECT_EQ(desk.outcome(all.front()), Outcome::Draining);
  EXPECT_EQ(desk.outcome(all.back()), std::nullopt) << "one event does bounded work";
  EXPECT_FALSE(desk.place(all.back())) << "a place that is free now is for nobody";
  desk.tell(model::ClientGone{all.back()});
  desk.wait(0s);
  for (int i = 0; i < 99; ++i) EXPECT_EQ(desk.outcome(all[i]), Outcome::Draining);
  EXPECT_EQ(desk.outcome(all.back()), Outcome::ClientGone);
  EXPECT_TRUE(desk.core().idle());
}

TEST(DrainOver, IsTheSameWhenToldTwice) {
  Desk desk(1, 1);
  desk.tell(model::DrainOver{});
  desk.tell(model::DrainOver{});
  EXPECT_EQ(desk.core().totals().stale_events, 1u);
  EXPECT_EQ(desk.outcome(desk.arrive()), Outcome::Draining);
}

TEST(Routes, TrafficIsSplitByWeight) {
  Desk desk(1, 1000);
  add_model(desk);
  desk.fleet.routes[0].targets = {{model::ModelId(1), 3}, {model::ModelId(2), 1}};
  int second = 0;
  for (int i = 0; i < 800; ++i) {
    const auto r = desk.arrive();
    if (desk.place(r) == model::EndpointId(2)) ++second;
    desk.complete(r);
  }
  EXPECT_NEAR(second, 200, 40);
}

TEST(Routes, ATargetWithoutEndpointsGivesItsShareToTheOthers) {
  Desk desk(1, 1000);
  const auto other = add_model(desk);
  desk.fleet.routes[0].targets = {{model::ModelId(1), 1}, {model::ModelId(2), 1}};
  desk.remove_endpoint(other);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(desk.place(desk.arrive()), model::EndpointId(1));
}

TEST(Routes, FallbackServesOnlyWhenNoTargetCan) {
  Desk desk(1, 1000);
  const auto other = add_model(desk);
  desk.fleet.routes[0].fallback = {model::ModelId(2)};
  EXPECT_EQ(desk.place(desk.arrive()), model::EndpointId(1));
  desk.remove_endpoint(model::EndpointId(1));
  desk.apply();
  EXPECT_EQ(desk.place(desk.arrive()), other);
}

TEST(Routes, FallbackServesWhileEveryTargetIsDown) {
  Desk desk(1, 1000);
  const auto other = add_model(desk);
  desk.fleet.routes[0].fallback = {model::ModelId(2)};
  desk.apply();
  desk.tell(model::EndpointUnreachable{model::EndpointId(1)});
  EXPECT_EQ(desk.place(desk.arrive()), other);
  desk.tell(model::EndpointUnreachable{other});
  EXPECT_EQ(desk.place(desk.arrive()), model::EndpointId(1)) << "all are down: as if all were up";
  desk.observe(model::EndpointId(1));
  EXPECT_EQ(desk.place(desk.arrive()), model::EndpointId(1));
}

TEST(Fleet, WhereNobodyAcceptsConnectionsIsTheLastResort) {
  Desk desk(3, 1000);
  desk.apply();
  for (std::uint32_t i : {1, 2}) {
    desk.tell(model::EndpointUnreachable{model::EndpointId(i), true});
  }
  std::vector<model::RequestId> ids;
  for (int i = 0; i < 50; ++i) {
    ids.push_back(desk.arrive());
    EXPECT_EQ(desk.place(ids.back()), model::EndpointId(3));
  }
  desk.tell(model::EndpointUnreachable{model::EndpointId(3), true});
  const auto last = desk.arrive();
  EXPECT_TRUE(desk.place(last)) << "all are down: the least bad serves";
  // Whoever answers is there after all; so is who is looked at again.
  desk.first_token(last);
  EXPECT_EQ(desk.place(desk.arrive()), desk.place(last));
  const model::EndpointId other(desk.place(last).value() == 1 ? 2 : 1);
  desk.observe(other);
  EXPECT_EQ(desk.place(desk.arrive()), other) << "idle";
}

TEST(Fleet, ALookThatFailsOnAConnectionProvesLittle) {
  Desk desk(2, 1000);
  desk.apply();
  const auto first = desk.arrive();
  const model::EndpointId other(desk.place(first).value() == 1 ? 2 : 1);
  desk.tell(model::EndpointUnreachable{other});
  EXPECT_EQ(desk.place(desk.arrive()), other);
}

TEST(Routes, WhoFailsOnATargetIsTriedOnTheFallback) {
  Desk desk(1, 1000);
  const auto other = add_model(desk);
  desk.fleet.routes[0].fallback = {model::ModelId(2)};
  const auto one = desk.arrive();
  ASSERT_EQ(desk.place(one), model::EndpointId(1));
  desk.fail(one, AttemptResult::ServerError);
  EXPECT_EQ(desk.place(one), other);
  desk.complete(one);
  EXPECT_EQ(desk.outcome(one), Outcome::Completed);
}

TEST(Routes, FallbackServesWhileATargetFailsEverything) {
  Desk desk(1, 1000);
  const auto other = add_model(desk);
  desk.fleet.routes[0].fallback = {model::ModelId(2)};
  int calls = 0;
  for (int i = 0; i < 200; ++i) {  // for twenty seconds
    const auto r = desk.arrive();
    if (desk.place(r) == model::EndpointId(1)) {
      ++calls;
      desk.fail(r, AttemptResult::ServerError);
    }
    EXPECT_EQ(desk.place(r), other);
    desk.complete(r);
    desk.wait(100ms);
  }
  EXPECT_LE(calls, 5 + 4) << "five to learn it, then one as often as an ejection would end";
  EXPECT_GE(calls, 5 + 3);
  desk.wait(6s);
  const auto healed = desk.arrive();
  EXPECT_EQ(desk.place(healed), model::EndpointId(1));
}

TEST(Routes, FallbackServesWhenATargetIsFullAndSoIsItsQueue) {
  Desk desk(1, 1);
  const auto other = add_model(desk);
  desk.config.admission.queue_requests_max = 1;
  desk.fleet.routes[0].fallback = {model::ModelId(2)};
  EXPECT_EQ(desk.place(desk.arrive()), model::EndpointId(1));
  const auto waits = desk.arrive();
  EXPECT_TRUE(desk.waits(waits));
  EXPECT_EQ(desk.place(desk.arrive()), other);
  desk.leave(waits);
}

TEST(Routes, WhoWaitsForAModelThatGoesIsTakenByTheFallback) {
  Desk desk(1, 1);
  const auto other = add_model(desk);
  desk.fleet.routes[0].fallback = {model::ModelId(2)};
  const auto runs = desk.arrive();
  const auto waits = desk.arrive();
  ASSERT_TRUE(desk.waits(waits));
  desk.remove_endpoint(model::EndpointId(1));
  desk.apply();
  EXPECT_EQ(desk.place(waits), other);
  desk.complete(runs);
}

TEST(Routes, PrefixesOfTheFallbackAreItsOwn) {
  Desk desk(1, 1000);
  const auto other = add_model(desk);
  desk.fleet.routes[0].fallback = {model::ModelId(2)};
  model::RequestArrived r = desk.request();
  for (int i = 1; i <= 8; ++i) r.prompt.chain.push_back({1000ull + i, i * 2048});
  r.prompt.bytes = 8 * 2048;
  const auto moved = desk.arrive(r);
  desk.fail(moved, AttemptResult::ServerError);
  ASSERT_EQ(desk.place(moved), other);
  desk.first_token(moved);
  desk.complete(moved);
  desk.remove_endpoint(model::EndpointId(1));
  desk.apply();
  const auto next = desk.arrive(r);
  ASSERT_EQ(desk.place(next), other);
  const DecisionRecord* record = desk.core().decisions().find(desk.sent(next).decision);
  EXPECT_GT(record->cached_predicted, 300) << "bound anew, the chain is that of any other request";
}

TEST(Fleet, AnEngineThatListsOtherModelsGetsNothing) {
  Desk desk(2);
  desk.fleet.endpoints[0].serves = false;
  for (int i = 0; i < 4; ++i) {
    const auto r = desk.arrive();
    EXPECT_EQ(desk.place(r), model::EndpointId(2));
    desk.complete(r);
  }
  desk.fleet.endpoints[1].serves = false;
  desk.apply();
  const auto r = desk.arrive();
  EXPECT_EQ(desk.outcome(r), Outcome::NoEndpoint);
  const auto of = desk.core().decisions().of(r);
  ASSERT_EQ(of.size(), 1u);
  const auto other = static_cast<std::size_t>(routing::Reason::OtherModel);
  EXPECT_EQ(of[0]->decision.refusals[other].count, 2u);
  desk.fleet.endpoints[0].serves = true;
  desk.apply();
  EXPECT_EQ(desk.place(desk.arrive()), model::EndpointId(1));
}

TEST(Routes, ATargetThatIsDownOrClosedToTheTenantGivesItsShareToTheOthers) {
  Desk desk(1, 1000);
  const auto other = add_model(desk);
  desk.fleet.tenants = {{model::TenantId(1), "in", 0}, {model::TenantId(2), "out", 0}};
  desk.fleet.routes[0].targets = {{model::ModelId(1), 1}, {model::ModelId(2), 1}};
  desk.fleet.pools[0].tenants = {model::TenantId(1)};
  model::RequestArrived r = desk.request();
  r.tenant = model::TenantId(2);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(desk.place(desk.arrive(r)), other);
  desk.tell(model::EndpointUnreachable{other});
  r.tenant = model::TenantId(1);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(desk.place(desk.arrive(r)), model::EndpointId(1));
}

TEST(Routes, AnUnknownRouteHasNoEndpoint) {
  Desk desk(1);
  model::RequestArrived r = desk.request();
  r.route = model::RouteId(9);
  EXPECT_EQ(desk.outcome(desk.arrive(r)), Outcome::NoEndpoint);
}

TEST(Routes, AnAdapterThatNobodyHasHasNoEndpoint) {
  Desk desk(1);
  model::RequestArrived r = desk.request();
  r.lora = lora_hash("law");
  EXPECT_TRUE(desk.place(desk.arrive(r)));
  r.lora = lora_hash("poetry");
  EXPECT_EQ(desk.outcome(desk.arrive(r)), Outcome::NoEndpoint);
}

TEST(Routes, AnAdapterGoesToTheTargetThatHasIt) {
  Desk desk(1, 1000);
  add_model(desk);
  desk.fleet.models[1].loras = {"code"};
  desk.fleet.routes[0].targets = {{model::ModelId(1), 1}, {model::ModelId(2), 9}};
  model::RequestArrived law = desk.request(), code = desk.request();
  for (int i = 0; i < 40; ++i) {
    law = desk.request();
    law.lora = lora_hash("law");
    EXPECT_EQ(desk.place(desk.arrive(law)), model::EndpointId(1));
  }
  int second = 0;
  for (int i = 0; i < 100; ++i) {
    code = desk.request();
    code.lora = lora_hash("code");
    second += desk.place(desk.arrive(code)) == model::EndpointId(2) ? 1 : 0;
  }
  EXPECT_NEAR(second, 90, 9) << "who has it as well gets its share";
}

TEST(Routes, AnAdapterNeverGoesToAFallbackWithoutIt) {
  Desk desk(1, 1000);
  add_model(desk);
  desk.fleet.models[1].loras = {};
  desk.fleet.routes[0].fallback = {model::ModelId(2)};
  desk.apply();
  desk.tell(model::EndpointUnreachable{model::EndpointId(1)});
  model::RequestArrived r = desk.request();
  r.lora = lora_hash("law");
  EXPECT_EQ(desk.place(desk.arrive(r)), model::EndpointId(1));
}

// The first who waits for an adapter holds up nobody, not even until the next event.
TEST(Waiting, WhoWaitsForAnAdapterHoldsUpNobodyElse) {
  Desk desk(2, 1);
  desk.fleet.endpoints[0].lists_loras = desk.fleet.endpoints[1].lists_loras = true;
  desk.fleet.endpoints[0].loras = {"law"};
  model::RequestArrived first = desk.request();
  first.lora = lora_hash("law");
  ASSERT_EQ(desk.place(desk.arrive(first)), model::EndpointId(1));
  model::RequestArrived second = desk.request();
  second.lora = lora_hash("law");
  const auto waits = desk.arrive(second);
  ASSERT_TRUE(desk.waits(waits));
  EXPECT_EQ(desk.place(desk.arrive()), model::EndpointId(2));
  const auto behind = desk.arrive();
  EXPECT_TRUE(desk.waits(behind)) << "everything is full";
}

TEST(Waiting, WhoMayNotWaitIsExplained) {
  Desk desk(1, 1);
  desk.config.admission.queue_requests_max = 0;
  EXPECT_EQ(desk.place(desk.arrive()), model::EndpointId(1));
  const auto refused = desk.arrive();
  EXPECT_EQ(desk.outcome(refused), Outcome::QueueFull);
  const auto decisions = desk.core().decisions().of(refused);
  ASSERT_EQ(decisions.size(), 1u);
  EXPECT_TRUE(decisions[0]->queue_full);
}

TEST(Routes, AnAdapterIsSoughtWhereAnEngineToldThatItHasIt) {
  Desk desk(3, 1000);
  desk.fleet.endpoints[0].lists_loras = true;
  desk.fleet.endpoints[1].lists_loras = true;
  desk.fleet.endpoints[1].loras = {"law"};
  model::RequestArrived law = desk.request(), code = desk.request();
  law.lora = lora_hash("law");
  code.lora = lora_hash("code");
  for (int i = 0; i < 50; ++i) {
    EXPECT_NE(desk.place(desk.arrive(law)), model::EndpointId(1));
    EXPECT_EQ(desk.place(desk.arrive(code)), model::EndpointId(3)) << "what it has nobody told";
  }
}

TEST(Routes, APoolServesOnlyItsTenants) {
  Desk desk(1);
  desk.fleet.tenants = {{model::TenantId(1), "in", 0}, {model::TenantId(2), "out", 0}};
  desk.fleet.pools[0].tenants = {model::TenantId(1)};
  model::RequestArrived r = desk.request();
  r.tenant = model::TenantId(1);
  EXPECT_TRUE(desk.place(desk.arrive(r)));
  r.tenant = model::TenantId(2);
  EXPECT_EQ(desk.outcome(desk.arrive(r)), Outcome::NoEndpoint);
}

TEST(Routes, APromptThatSeemsTooLongIsSentForTheEngineToJudge) {
  Desk desk(1);
  desk.fleet.models[0].context_tokens = 4096;
  model::RequestArrived r = desk.request();
  r.prompt.bytes = 1 << 20;
  const auto id = desk.arrive(r);
  EXPECT_TRUE(desk.place(id));
  desk.fail(id, AttemptResult::ClientError);
  EXPECT_EQ(desk.outcome(id), Outcome::EngineClientError);
}

// Of the only route: one endpoint of so many places.
void add_fallback(Desk& desk, int places) {
  add_model(desk);
  desk.fleet.pools[1].concurrency_max = places;
  desk.fleet.routes[0].fallback = {model::ModelId(2)};
}

TEST(Fleet, WhoWaitsForAModelThatIsDownGoesOverToOneThatIsNot) {
  Desk desk(2, 1);
  add_fallback(desk, 100);
  std::vector<model::RequestId> ids = desk.arrive_many(20);
  for (std::uint32_t e : {1, 2}) desk.tell(model::EndpointUnreachable{model::EndpointId(e), true});
  for (int i = 0; i < 2; ++i) desk.fail(ids[static_cast<std::size_t>(i)], AttemptResult::Reset);
  desk.wait(1s);
  for (std::size_t i = 2; i < ids.size(); ++i) {
    EXPECT_EQ(desk.place(ids[i]), model::EndpointId(3)) << i;
  }
}

TEST(Fleet, NoMoreGoOverThanThereArePlacesAndTheRestGoBack) {
  Desk desk(2, 1);
  add_fallback(desk, 2);
  std::vector<model::RequestId> ids = desk.arrive_many(20);
  const auto there = [&] {
    return std::ranges::count_if(ids, [&](model::RequestId id) {
      return desk.place(id) == model::EndpointId(3) && !desk.outcome(id);
    });
  };
  for (std::uint32_t e : {1, 2}) desk.tell(model::EndpointUnreachable{model::EndpointId(e), true});
  desk.wait(1s);
  EXPECT_EQ(there(), 2);
  // Who comes now is meant for the fallback, and waits for it.
  for (int i = 0; i < 4; ++i) ids.push_back(desk.arrive());
  for (std::uint32_t e : {1, 2}) desk.observe(model::EndpointId(e));
  desk.tell(model::EndpointUnreachable{model::EndpointId(3), true});
  for (std::size_t round = 0; round < 30; ++round) {
    for (const model::RequestId id : ids) {
      if (desk.place(id) && desk.place(id) != model::EndpointId(3) && !desk.outcome(id)) {
        desk.finish(id);
      }
    }
    desk.wait(300ms);
  }
  EXPECT_EQ(desk.core().in_flight(), 2u) << "those that hang at the fallback";
}

TEST(Fleet, WhatSeemsTooLongWaitsForAPlaceLikeOthers) {
  Desk desk(1, 1);
  desk.fleet.models[0].context_tokens = 100;
  std::vector<model::RequestId> ids;
  for (int i = 0; i < 10; ++i) {
    model::RequestArrived r = desk.request();
    r.prompt.bytes = 4000;
    ids.push_back(desk.arrive(r));
    EXPECT_FALSE(desk.outcome(ids.back())) << i;
  }
  desk.finish_all(ids);
  for (const model::RequestId id : ids) EXPECT_EQ(desk.outcome(id), Outcome::Completed);
}

TEST(Fleet, ARefusedConnectionNeedsNoBudgetToBeTriedElsewhere) {
  Desk desk(1, 100);
  add_fallback(desk, 100);
  std::vector<model::RequestId> ids = desk.arrive_many(100);
  for (const model::RequestId id : ids) desk.fail(id, AttemptResult::ConnectError);
  for (const model::RequestId id : ids) EXPECT_EQ(desk.place(id), model::EndpointId(2));
}

}  // namespace
}  // namespace signalbox::flow
