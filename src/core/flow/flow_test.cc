// SPDX-License-Identifier: Apache-2.0
// Goal: one request's life goes through its phases as promised, on every path, and leaves nothing
// behind. Method: scenarios by hand, event by event.
#include "core/flow/desk_for_test.inc"

namespace signalbox::flow {
namespace {

TEST(Life, ARequestIsSentStreamedAndCompleted) {
  Desk desk(1);
  const auto r = desk.arrive();
  EXPECT_EQ(desk.place(r), model::EndpointId(1));
  EXPECT_EQ(desk.core().in_flight(), 1u);
  EXPECT_FALSE(desk.core().idle());
  desk.first_token(r);
  desk.complete(r);
  EXPECT_EQ(desk.outcome(r), Outcome::Completed);
  EXPECT_EQ(desk.conclusion(r).answer, Answer::PassOn);
  EXPECT_EQ(desk.conclusion(r).attempt, model::AttemptId(1));
  EXPECT_TRUE(desk.core().idle());
  EXPECT_EQ(desk.core().ledger().all().completion_tokens, 20);
}

TEST(Life, ActionsNameTheOwnerOfTheRequest) {
  Desk desk(1);
  model::RequestArrived r = desk.request();
  r.owner = 3;
  desk.arrive(r);
  ASSERT_EQ(desk.actions().size(), 1u);
  EXPECT_EQ(desk.actions()[0].owner, 3);
}

TEST(Waiting, IsFirstComeFirstServedAtTheConcurrencyLimit) {
  Desk desk(1, 2);
  const auto a = desk.arrive(), b = desk.arrive(), c = desk.arrive(), d = desk.arrive();
  EXPECT_TRUE(desk.place(a) && desk.place(b));
  EXPECT_TRUE(desk.waits(c) && desk.waits(d));
  desk.now += 3s;
  desk.complete(b);
  EXPECT_TRUE(desk.place(c)) << "who waits longest goes first";
  EXPECT_TRUE(desk.waits(d));
  EXPECT_EQ(desk.sent(c).queued, 3s);
  desk.complete(a);
  EXPECT_TRUE(desk.place(d));
}

TEST(Waiting, NewcomersDoNotOvertakeThoseWhoWait) {
  Desk desk(1, 1);
  const auto a = desk.arrive(), b = desk.arrive(), c = desk.arrive();
  desk.complete(a);
  EXPECT_TRUE(desk.place(b));
  EXPECT_TRUE(desk.waits(c));
  const auto d = desk.arrive();
  desk.complete(b);
  EXPECT_TRUE(desk.place(c));
  EXPECT_TRUE(desk.waits(d));
}

TEST(Waiting, AFullQueueIs503WithTheTimeUntilItHasDrained) {
  Desk desk(1, 1);
  desk.config.admission.queue_requests_max = 2;
  desk.arrive();
  const auto b = desk.arrive(), c = desk.arrive(), d = desk.arrive();
  EXPECT_TRUE(desk.waits(b) && desk.waits(c));
  EXPECT_EQ(desk.outcome(d), Outcome::QueueFull);
  EXPECT_EQ(desk.conclusion(d).answer, Answer::Local);
  EXPECT_GE(desk.conclusion(d).retry_after, 1s);
  EXPECT_LE(desk.conclusion(d).retry_after, 120s);
}

TEST(Waiting, RetryAfterIsTheTimeThatAnswersTakeNotThatFailuresTake) {
  Desk desk(1, 1);
  desk.config.admission.queue_requests_max = 2;
  for (int i = 0; i < 300; ++i) {
    const auto r = desk.arrive();
    desk.wait(10s);
    desk.complete(r);
  }
  for (int i = 0; i < 100; ++i) desk.fail(desk.arrive(), AttemptResult::ConnectError);
  desk.arrive();
  desk.arrive();
  desk.arrive();
  const auto refused = desk.arrive();
  ASSERT_EQ(desk.outcome(refused), Outcome::QueueFull);
  EXPECT_NEAR(to_seconds(desk.conclusion(refused).retry_after), 20, 3);
}

TEST(Waiting, RetryAfterOfAModelIsReckonedFromItsOwnEndpointsAndAnswers) {
  Desk desk(1, 1);
  desk.config.admission.queue_requests_max = 2;
  desk.fleet.models.push_back({model::ModelId(2), "n", "", 8, 0, 100'000, {}});
  model::Pool other = desk.fleet.pools[0];
  other.id = model::PoolId(2);
  other.name = "q";
  other.model = model::ModelId(2);
  other.concurrency_max = 50;
  desk.fleet.pools.push_back(other);
  desk.add_endpoint(2);
  desk.fleet.routes.push_back({model::RouteId(2), "n", {{model::ModelId(2), 1}}, {}, {}, {}});
  auto for_other = desk.request();
  for_other.route = model::RouteId(2);
  for (int i = 0; i < 300; ++i) {
    const auto slow = desk.arrive();
    const auto quick = desk.arrive(for_other);
    desk.wait(100ms);
    desk.complete(quick);
    desk.wait(9900ms);
    desk.complete(slow);
  }
  for (int i = 0; i < 40; ++i) desk.arrive(for_other);
  desk.arrive();
  desk.arrive();
  desk.arrive();
  const auto refused = desk.arrive();
  ASSERT_EQ(desk.outcome(refused), Outcome::QueueFull);
  EXPECT_NEAR(to_seconds(desk.conclusion(refused).retry_after), 20, 3)
      << "two wait for one engine that takes ten seconds each";
}

TEST(Waiting, TheQueueIsBoundedInBytesToo) {
  Desk desk(1, 1);
  desk.config.admission.queue_bytes_max.value = 1500;
  desk.arrive();
  const auto b = desk.arrive(), c = desk.arrive();
  EXPECT_TRUE(desk.waits(b));
  EXPECT_EQ(desk.outcome(c), Outcome::QueueFull);
}

TEST(Waiting, EndsWhenItsTimeIsUp) {
  Desk desk(1, 1);
  desk.config.admission.queue_wait_max = 10s;
  const auto a = desk.arrive();
  const auto b = desk.arrive();
  desk.wait(9s);
  const auto c = desk.arrive();
  EXPECT_TRUE(desk.waits(b));
  desk.wait(2s);
  EXPECT_EQ(desk.outcome(b), Outcome::QueueTimeout);
  EXPECT_GT(desk.conclusion(b).retry_after, 0s);
  EXPECT_TRUE(desk.waits(c)) << "who came later still has time";
  desk.complete(a);
  EXPECT_TRUE(desk.place(c));
}

TEST(Waiting, ManyTimesUpAtOnceEndInSlices) {
  Desk desk(1, 1);
  desk.config.admission.queue_wait_max = 10s;
  desk.arrive();
  std::vector<model::RequestId> waiting;
  for (int i = 0; i < 100; ++i) waiting.push_back(desk.arrive());
  desk.now += 11s;
  desk.tell(model::Tick{});
  EXPECT_LE(desk.actions().size(), 16u) << "the work of one event is bounded";
  EXPECT_LE(desk.core().next_wake(), desk.now) << "and goes on at once";
  desk.wait(0s);
  for (const auto id : waiting) EXPECT_EQ(desk.outcome(id), Outcome::QueueTimeout);
}

TEST(Waiting, ARequestThatWaitsForItsOwnReasonsHoldsUpNobody) {
  Desk desk(2, 1);
  const auto a = desk.arrive(), b = desk.arrive();
  desk.fail(a, AttemptResult::ServerError);
  ASSERT_TRUE(desk.place(b) != desk.place(a));
  EXPECT_EQ(desk.outcome(a), std::nullopt) << "waits for the endpoint that has not failed it";
  const auto c = desk.arrive();
  EXPECT_TRUE(desk.place(c)) << "the endpoint that failed the first is open to others";
  desk.complete(b);
  EXPECT_EQ(desk.sent(a).attempt, model::AttemptId(2));
}

TEST(Waiting, ManyWhoWaitForOneAdapterHideNobodyBehindThem) {
  Desk desk(2, 1);
  for (model::Endpoint& e : desk.fleet.endpoints) e.lists_loras = true;
  desk.fleet.endpoints[0].loras = {"law"};
  model::RequestArrived adapted = desk.request();
  adapted.lora = lora_hash("law");
  const auto a = desk.arrive(adapted), b = desk.arrive();
  ASSERT_EQ(desk.place(a), model::EndpointId(1));
  ASSERT_EQ(desk.place(b), model::EndpointId(2));
  for (int i = 0; i < 400; ++i) ASSERT_TRUE(desk.waits(desk.arrive(adapted)));
  const auto plain = desk.arrive();
  ASSERT_TRUE(desk.waits(plain));
  desk.complete(b);
  EXPECT_EQ(desk.place(plain), model::EndpointId(2)) << "without a tick in between";
}

TEST(Tenants, OwnCapIs429AndOthersAreNotTouched) {
  Desk desk(1, 10);
  desk.fleet.tenants = {{model::TenantId(1), "small", 2}, {model::TenantId(2), "large", 0}};
  model::RequestArrived r = desk.request();
  r.tenant = model::TenantId(1);
  const auto a = desk.arrive(r), b = desk.arrive(r), c = desk.arrive(r);
  EXPECT_TRUE(desk.place(a) && desk.place(b));
  EXPECT_EQ(desk.outcome(c), Outcome::TenantLimit);
  EXPECT_EQ(model::http_status(*desk.outcome(c)), 429);
  EXPECT_GT(desk.conclusion(c).retry_after, 0s);
  r.tenant = model::TenantId(2);
  EXPECT_TRUE(desk.place(desk.arrive(r)));
  desk.complete(a);
  r.tenant = model::TenantId(1);
  EXPECT_TRUE(desk.place(desk.arrive(r))) << "an end gives the place back";
}

TEST(Tenants, WaitingRequestsCountAgainstTheCap) {
  Desk desk(1, 1);
  desk.fleet.tenants = {{model::TenantId(1), "t", 2}};
  model::RequestArrived r = desk.request();
  r.tenant = model::TenantId(1);
  desk.arrive(r);
  EXPECT_TRUE(desk.waits(desk.arrive(r)));
  EXPECT_EQ(desk.outcome(desk.arrive(r)), Outcome::TenantLimit);
}

class RetriedResults : public testing::TestWithParam<AttemptResult> {};

TEST_P(RetriedResults, AreTriedElsewhereBeforeTheFirstByte) {
  Desk desk(2);
  const auto r = desk.arrive();
  const auto first = desk.place(r);
  desk.fail(r, GetParam());
  EXPECT_NE(desk.place(r), first);
  EXPECT_EQ(desk.sent(r).attempt, model::AttemptId(2));
  EXPECT_EQ(desk.core().totals().retries, 1u);
  desk.complete(r);
  EXPECT_EQ(desk.outcome(r), Outcome::Completed);
  EXPECT_EQ(desk.conclusion(r).attempt, model::AttemptId(2));
  EXPECT_TRUE(desk.core().idle());
}

TEST_P(RetriedResults, AreNotTriedAgainOnceBytesWentOut) {
  Desk desk(2);
  const auto r = desk.arrive();
  desk.first_token(r);
  model::AttemptEnded e = desk.ending(r, GetParam());
  e.delivered = true;
  desk.tell(e);
  ASSERT_TRUE(desk.outcome(r).has_value());
  EXPECT_NE(desk.outcome(r), Outcome::Completed);
  EXPECT_TRUE(desk.core().idle());
}

INSTANTIATE_TEST_SUITE_P(Results, RetriedResults,
                         testing::Values(AttemptResult::ConnectError, AttemptResult::Reset,
                                         AttemptResult::ServerError, AttemptResult::Truncated));

TEST(Recovery, RefusalsOfTheRequestItselfArePassedOnAtOnce) {
  Desk desk(2);
  const auto a = desk.arrive(), b = desk.arrive();
  desk.fail(a, AttemptResult::ClientError);
  EXPECT_EQ(desk.outcome(a), Outcome::EngineClientError);
  EXPECT_EQ(desk.conclusion(a).answer, Answer::PassOn);
  model::AttemptEnded e = desk.ending(b, AttemptResult::Throttled);
  e.retry_after = 7s;
  desk.tell(e);
  EXPECT_EQ(desk.outcome(b), Outcome::EngineThrottled);
  EXPECT_EQ(desk.conclusion(b).answer, Answer::PassOn);
  EXPECT_EQ(desk.conclusion(b).retry_after, 7s);
}

TEST(Recovery, ConnectErrorsEverywhereEndAsUnreachableAfterEachEndpointOnce) {
  Desk desk(2);
  const auto r = desk.arrive();
  desk.fail(r, AttemptResult::ConnectError);
  desk.fail(r, AttemptResult::ConnectError);
  EXPECT_EQ(desk.outcome(r), Outcome::EngineUnreachable);
  EXPECT_EQ(desk.conclusion(r).answer, Answer::Local);
  EXPECT_EQ(desk.sent(r).attempt, model::AttemptId(2));
}

TEST(Recovery, ErrorsEverywhereArePassedOnAfterTwoAnswers) {
  Desk desk(5);
  const auto r = desk.arrive();
  desk.fail(r, AttemptResult::ServerError);
  EXPECT_EQ(desk.outcome(r), std::nullopt);
  desk.fail(r, AttemptResult::ServerError);
  EXPECT_EQ(desk.outcome(r), Outcome::EngineError);
  EXPECT_EQ(desk.conclusion(r).answer, Answer::PassOn);
}

TEST(Recovery, TheRetryBudgetStopsAStorm) {
  Desk desk(4, 64);
  std::vector<model::RequestId> requests;
  for (int i = 0; i < 40; ++i) requests.push_back(desk.arrive());
  for (const auto id : requests) desk.fail(id, AttemptResult::ServerError);
  // 20 % of what is active, which shrinks as requests end, and never under three.
  EXPECT_GE(desk.core().totals().retries, 3u);
  EXPECT_LE(desk.core().totals().retries, 8u);
  const auto ended = std::count_if(requests.begin(), requests.end(),
                                   [&](auto id) { return desk.outcome(id).has_value(); });
  EXPECT_EQ(static_cast<std::uint64_t>(ended) + desk.core().totals().retries, 40u);
}

TEST(Ejection, FiveFailuresInARowTakeAnEndpointOutUntilAProbeSucceeds) {
  Desk desk(2, 8);
  desk.config.recovery.retry_share = 0;
  desk.config.recovery.retries_min = 0;
  const model::EndpointId bad(1);
  int failures = 0;
  for (int i = 0; i < 100 && failures < 5; ++i) {
    const auto r = desk.arrive();
    if (desk.place(r) != bad) {
      desk.complete(r);
    } else {
      desk.fail(r, AttemptResult::ConnectError);
      ++failures;
    }
    desk.wait(2s);  // so that the price of the last failure fades
  }
  ASSERT_EQ(failures, 5);
  desk.wait(-2s + 1ms);
  for (int i = 0; i < 20; ++i) {
    const auto r = desk.arrive();
    EXPECT_NE(desk.place(r), bad) << "is out";
    desk.complete(r);
  }
  desk.wait(5s);
  bool probed = false;
  for (int i = 0; i < 200 && !probed; ++i) {
    const auto r = desk.arrive();
    probed = desk.place(r) == bad;
    if (probed) desk.first_token(r);
    desk.complete(r);
    desk.wait(500ms);
  }
  EXPECT_TRUE(probed) << "comes back";
  EXPECT_EQ(desk.core().endpoints(model::PoolId(1), desk.now)[0].standing, recovery::Standing::In);
}

TEST(Ejection, AllBadStillServes) {
  Desk desk(1, 8);
  for (int i = 0; i < 10; ++i) {
    const auto r = desk.arrive();
    ASSERT_TRUE(desk.place(r));
    desk.fail(r, AttemptResult::ConnectError);
    EXPECT_EQ(desk.outcome(r), Outcome::EngineUnreachable);
  }
  const auto r = desk.arrive();
  ASSERT_TRUE(desk.place(r));
  desk.complete(r);
  EXPECT_EQ(desk.outcome(r), Outcome::Completed);
}

class Outage : public ::testing::TestWithParam<model::DispatchMode> {};

// In the first moments endpoints are in, then half of them are out, then all are known to refuse.
TEST_P(Outage, ThatIsShortEmptiesNoQueue) {
  Desk desk(4, 1);
  desk.fleet.pools[0].dispatch = GetParam();
  std::vector<model::RequestId> ids = desk.arrive_many(100);
  desk.refuse_all(ids, 300ms);
  for (std::uint32_t e = 1; e <= 4; ++e) {
    desk.tell(model::EndpointUnreachable{model::EndpointId(e), true});
  }
  desk.refuse_all(ids, 300ms);
  const auto lost =
      std::ranges::count_if(ids, [&](auto id) { return desk.outcome(id).has_value(); });
  EXPECT_LE(lost, 4) << "those that were sent already";
  for (int i = 0; i < 20; ++i) desk.finish_all(ids);
  EXPECT_EQ(desk.core().totals().outcomes[static_cast<std::size_t>(Outcome::Completed)],
            ids.size() - static_cast<std::size_t>(lost));
  EXPECT_TRUE(desk.core().idle());
}

TEST_P(Outage, ThatLastsIsToldToThoseWhoWait) {
  Desk desk(4, 1);
  desk.fleet.pools[0].dispatch = GetParam();
  std::vector<model::RequestId> ids = desk.arrive_many(100);
  desk.refuse_all(ids, 6s);
  for (const model::RequestId id : ids) {
    EXPECT_EQ(desk.outcome(id), Outcome::EngineUnreachable);
    EXPECT_EQ(desk.conclusion(id).retry_after, 1s);
  }
  EXPECT_TRUE(desk.core().idle());
}

// Engines that answer with errors spend something on each.
TEST_P(Outage, OfEnginesThatResetCostsAFew) {
  Desk desk(8, 4);
  desk.fleet.pools[0].dispatch = GetParam();
  std::vector<model::RequestId> ids = desk.arrive_many(200);
  const auto lost = [&] {
    return std::ranges::count_if(ids, [&](auto id) { return desk.outcome(id).has_value(); });
  };
  desk.refuse_all(ids, 2s, AttemptResult::Reset);
  EXPECT_LE(lost(), 32 + 60);
  const auto by_then = lost();
  desk.wait(600ms);
  for (int i = 0; i < 20; ++i) desk.finish_all(ids);
  EXPECT_EQ(desk.core().totals().outcomes[static_cast<std::size_t>(Outcome::Completed)],
            ids.size() - static_cast<std::size_t>(by_then));
}

INSTANTIATE_TEST_SUITE_P(Recovery, Outage,
                         ::testing::Values(model::DispatchMode::Immediate,
                                           model::DispatchMode::Late,
                                           model::DispatchMode::Shuttle));

TEST(ClientGone, WhileWaitingLeavesTheQueue) {
  Desk desk(1, 1);
  const auto a = desk.arrive(), b = desk.arrive(), c = desk.arrive();
  desk.leave(b);
  EXPECT_EQ(desk.outcome(b), Outcome::ClientGone);
  EXPECT_EQ(desk.conclusion(b).answer, Answer::None);
  EXPECT_FALSE(desk.aborted(b));
  desk.complete(a);
  EXPECT_TRUE(desk.place(c));
  EXPECT_FALSE(desk.place(b));
}

TEST(ClientGone, DuringPrefillAbortsAndLetsTheNextOneGo) {
  Desk desk(1, 1);
  const auto a = desk.arrive(), b = desk.arrive();
  desk.leave(a);
  EXPECT_TRUE(desk.aborted(a));
  EXPECT_EQ(desk.outcome(a), Outcome::ClientGone);
  EXPECT_TRUE(desk.place(b));
  desk.complete(b);
  EXPECT_TRUE(desk.core().idle());
}

TEST(ClientGone, DuringTheStreamAborts) {
  Desk desk(1);
  const auto a = desk.arrive();
  desk.first_token(a);
  desk.leave(a);
  EXPECT_TRUE(desk.aborted(a));
  EXPECT_TRUE(desk.core().idle());
}

TEST(ClientGone, AfterTheEndChangesNothing) {
  Desk desk(1);
  const auto a = desk.arrive();
  desk.complete(a);
  desk.leave(a);
  EXPECT_TRUE(desk.actions().empty());
  EXPECT_EQ(desk.core().totals().stale_events, 1u);
}

TEST(Disorder, LateAndDuplicateEventsAreCountedAndHarmless) {
  Desk desk(2, 1);
  const auto a = desk.arrive();
  const model::FirstToken first{a, model::AttemptId(1)};
  const model::AttemptEnded reset = desk.ending(a, AttemptResult::Reset);
  desk.tell(reset);
  ASSERT_EQ(desk.sent(a).attempt, model::AttemptId(2));
  const auto harmless = [&](model::Event event) {
    const std::uint64_t before = desk.core().totals().stale_events;
    desk.tell(std::move(event));
    EXPECT_TRUE(desk.actions().empty());
    EXPECT_EQ(desk.core().totals().stale_events, before + 1);
  };
  harmless(first);  // of the attempt before
  harmless(reset);
  harmless(model::Progress{{{a, model::AttemptId(1), 5}}});
  desk.complete(a);
  harmless(model::FirstToken{a, model::AttemptId(2)});
  harmless(model::ClientGone{a});
  harmless(desk.ending(a, AttemptResult::Ok));
  EXPECT_TRUE(desk.core().idle());
  EXPECT_EQ(desk.core().totals().illegal_events, 0u);
}

TEST(Disorder, ProgressMayOvertakeTheFirstTokenAndTheEndMayOvertakeBoth) {
  Desk desk(1);
  const auto a = desk.arrive();
  desk.tell(model::Progress{{{a, model::AttemptId(1), 3}}});
  desk.complete(a);
  desk.tell(model::Progress{{{a, model::AttemptId(1), 9}}});
  desk.tell(model::FirstToken{a, model::AttemptId(1)});
  EXPECT_EQ(desk.outcome(a), Outcome::Completed);
  EXPECT_TRUE(desk.core().idle());
}

TEST(Time, NextWakeIsTheEarliestDeadline) {
  Desk desk(1, 1);
  desk.config.admission.queue_wait_max = 100ms;
  desk.arrive();
  desk.arrive();
  EXPECT_LE(desk.core().next_wake(), desk.now + 100ms);
  desk.wait(90ms);
  EXPECT_GT(desk.core().next_wake(), desk.now) << "what was due has been done";
}

TEST(Time, AnEarlyTickChangesNothing) {
  Desk desk(1, 1);
  desk.arrive();
  desk.arrive();
  desk.wait(0s);
  desk.tell(model::Tick{});
  EXPECT_TRUE(desk.actions().empty());
}

}  // namespace
}  // namespace signalbox::flow
