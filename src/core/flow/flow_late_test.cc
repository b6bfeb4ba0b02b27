// SPDX-License-Identifier: Apache-2.0
// Goal: late binding keeps engines fed and everything else movable; nobody is lost on the way.
// Method: stories told to a core by hand; engines whose pass takes 8,192 tokens.
#include <gtest/gtest.h>

#include "core/flow/desk_for_test.inc"

namespace signalbox::flow {
namespace {

class Late : public testing::Test {
 protected:
  void start(int endpoints) {
    desk_.emplace(endpoints, 100);
    desk_->fleet.pools[0].dispatch = model::DispatchMode::Late;
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
  int sent(const std::vector<model::RequestId>& ids) const {
    return static_cast<int>(
        std::ranges::count_if(ids, [&](model::RequestId id) { return bool(desk_->place(id)); }));
  }
  void finish(model::RequestId id) { desk_->finish(id); }
  void finish_all(const std::vector<model::RequestId>& ids) { desk_->finish_all(ids); }

  std::optional<Desk> desk_;
};

TEST_F(Late, AnEngineGetsThePresentPassAndTheNext) {
  start(1);
  const auto ids = arrive(12, 4'000);
  EXPECT_EQ(sent(ids), 5) << "4 x 4,000 tokens are less than two passes of 8,192";
  EXPECT_EQ(desk_->core().totals().waiting, 7u);
  desk_->first_token(ids[0]);
  EXPECT_EQ(sent(ids), 6);
  desk_->first_token(ids[1]);
  desk_->first_token(ids[2]);
  EXPECT_EQ(sent(ids), 8) << "one departs for each that is computed";
  finish_all(ids);
}

TEST_F(Late, AnEngineIsNeverLeftWithoutANextOne) {
  start(1);
  const auto huge = arrive(60'000), next = arrive(60'000), third = arrive(60'000);
  EXPECT_TRUE(desk_->place(huge));
  EXPECT_TRUE(desk_->place(next)) << "the first may be nearly done";
  EXPECT_TRUE(desk_->waits(third));
  finish_all({huge, next, third});
}

TEST_F(Late, TheShorterGoFirst) {
  start(1);
  auto ids = arrive(6, 4'000);
  const auto longer = arrive(60'000), shorter = arrive(2'000);
  desk_->first_token(ids[0]);
  desk_->first_token(ids[1]);
  EXPECT_TRUE(desk_->place(ids[5])) << "came much earlier";
  EXPECT_TRUE(desk_->place(shorter));
  EXPECT_TRUE(desk_->waits(longer));
  ids.insert(ids.end(), {longer, shorter});
  finish_all(ids);
}

TEST_F(Late, ButNobodyIsOvertakenForEver) {
  start(1);
  desk_->config.admission.queue_wait_max = 1h;
  auto ids = arrive(6, 4'000);
  const auto longer = arrive(60'000);
  desk_->wait(20min);
  const auto shorter = arrive(1'200);
  desk_->first_token(ids[0]);
  desk_->first_token(ids[1]);
  EXPECT_TRUE(desk_->place(longer));
  EXPECT_TRUE(desk_->waits(shorter));
  ids.insert(ids.end(), {longer, shorter});
  finish_all(ids);
}

TEST_F(Late, AnEngineWithoutWorkTakesOverFromOthers) {
  start(2);
  const auto ids = arrive(14, 4'000);
  EXPECT_EQ(sent(ids), 10);
  const model::EndpointId first = desk_->place(ids[0]);
  for (const model::RequestId id : ids) {
    if (desk_->place(id) == first && !desk_->outcome(id)) finish(id);
  }
  EXPECT_EQ(sent(ids), 14) << "the other has shown nothing yet";
  finish_all(ids);
}

TEST_F(Late, WhoLeavesIsForgottenAndWhoWaitsTooLongIsTold) {
  start(1);
  desk_->config.admission.queue_wait_max = 20s;
  const auto ids = arrive(8, 4'000);
  desk_->leave(ids[6]);
  EXPECT_EQ(desk_->outcome(ids[6]), Outcome::ClientGone);
  desk_->wait(21s);
  EXPECT_EQ(desk_->outcome(ids[5]), Outcome::QueueTimeout);
  EXPECT_EQ(desk_->outcome(ids[7]), Outcome::QueueTimeout);
  for (int i = 0; i < 5; ++i) finish(ids[static_cast<std::size_t>(i)]);
  EXPECT_TRUE(desk_->core().idle());
}

TEST_F(Late, WhoseEndpointIsGoneFindsAnother) {
  start(2);
  const auto ids = arrive(14, 4'000);
  const model::EndpointId gone = desk_->place(ids[0]);
  desk_->remove_endpoint(gone);
  desk_->apply();
  for (const model::RequestId id : ids) {
    if (desk_->place(id) && desk_->place(id) != gone) finish(id);
  }
  desk_->wait(1s);
  for (const model::RequestId id : ids) EXPECT_FALSE(desk_->waits(id));
  finish_all(ids);
}

TEST_F(Late, WhoMayNotWaitDepartsAtOnce) {
  start(1);
  desk_->config.admission.queue_requests_max = 2;
  const auto ids = arrive(9, 4'000);
  EXPECT_EQ(sent(ids), 7);
  EXPECT_TRUE(desk_->waits(ids[5]) && desk_->waits(ids[6]));
  EXPECT_TRUE(desk_->place(ids[8])) << "the engine has slots";
  finish_all(ids);
}

TEST_F(Late, WhoDepartsIsToldWhatIsAheadAlone) {
  start(1);
  const auto ids = arrive(30, 4'000);
  desk_->first_token(ids[0]);
  const auto record = desk_->core().decisions().of(ids[5]).back();
  ASSERT_TRUE(record->attempt);
  const auto last = desk_->core().decisions().of(ids[4]).back();
  EXPECT_LT(record->ttft_predicted, 1.1 * last->ttft_predicted)
      << "24 are held behind it, and none of them is ahead";
  finish_all(ids);
}

TEST_F(Late, AReloadThatTakesTheModelAwayLeavesNothingBehind) {
  start(2);
  auto ids = arrive(20, 4'000);
  model::Model other = desk_->fleet.models[0];
  other.id = model::ModelId(2);
  other.name = "m2";
  desk_->fleet.models.push_back(other);
  desk_->fleet.pools[0].model = other.id;
  desk_->apply();
  desk_->wait(1s);
  for (const model::RequestId id : ids) {
    if (desk_->place(id)) finish(id);
    else EXPECT_EQ(desk_->outcome(id), Outcome::NoEndpoint);
  }
  EXPECT_TRUE(desk_->core().idle());
  desk_->fleet.pools[0].model = model::ModelId(1);
  desk_->apply();
  ids = arrive(20, 4'000);
  EXPECT_GT(sent(ids), 4);
  finish_all(ids);
}

TEST_F(Late, WhyItStaysIsExplained) {
  start(1);
  const auto ids = arrive(6, 4'000);
  const auto records = desk_->core().decisions().of(ids[5]);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0]->held, model::DispatchMode::Late);
  EXPECT_FALSE(records[0]->attempt);
  EXPECT_EQ(records[0]->decision.endpoint, desk_->place(ids[0]));
  finish_all(ids);
}

TEST_F(Late, AnswersThatAreNotStreamedHoldUpNobody) {
  start(1);
  std::vector<model::RequestId> ids;
  for (int i = 0; i < 40; ++i) {
    model::RequestArrived r = desk_->request();
    r.prompt.bytes = 16'000;
    r.stream = false;
    ids.push_back(desk_->arrive(r));
  }
  EXPECT_EQ(sent(ids), 40) << "nobody sees when their prompts have been computed";
  for (const model::RequestId id : ids) desk_->complete(id);
  EXPECT_TRUE(desk_->core().idle());
}

TEST_F(Late, ImmediateHoldsNothing) {
  start(1);
  desk_->fleet.pools[0].dispatch = model::DispatchMode::Immediate;
  const auto ids = arrive(40, 4'000);
  EXPECT_EQ(sent(ids), 40);
  finish_all(ids);
}

}  // namespace
}  // namespace signalbox::flow
