// SPDX-License-Identifier: Apache-2.0
// Goal: order, limits and deadlines of those who wait. Method: small cases, and random calls on a
// plain list as well.
#include "core/admission/wait_queue.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <list>
#include <set>

#include "base/rng.h"

namespace signalbox::admission {
namespace {

using model::ModelId;
using model::RequestId;
using std::chrono::seconds;

const ModelId kA(1), kB(2);
const Instant kStart{seconds(1)};

TEST(WaitQueue, ServesEachModelInOrderOfArrival) {
  WaitQueue queue{Config{}};
  for (std::uint64_t i = 1; i <= 4; ++i) {
    EXPECT_TRUE(queue.push(i % 2 == 0 ? kA : kB, RequestId(i), 10, kStart));
  }
  EXPECT_EQ(queue.front(kA), RequestId(2));
  EXPECT_EQ(queue.next(RequestId(2)), RequestId(4));
  EXPECT_EQ(queue.next(RequestId(4)), RequestId());
  queue.pop(kA);
  EXPECT_EQ(queue.front(kA), RequestId(4));
  EXPECT_EQ(queue.front(kB), RequestId(1));
  EXPECT_EQ(queue.models(), (std::vector<ModelId>{kA, kB}));
}

TEST(WaitQueue, RefusesBeyondItsNumberAndItsBytes) {
  WaitQueue queue{Config{.queue_requests_max = 2, .queue_bytes_max = {100},
                         .queue_wait_max = seconds(1)}};
  EXPECT_TRUE(queue.push(kA, RequestId(1), 60, kStart));
  EXPECT_FALSE(queue.push(kA, RequestId(2), 41, kStart));
  EXPECT_TRUE(queue.push(kA, RequestId(2), 40, kStart));
  EXPECT_FALSE(queue.push(kB, RequestId(3), 0, kStart));
  EXPECT_EQ(queue.bytes(), 100);
  EXPECT_TRUE(queue.remove(kA, RequestId(1)));
  EXPECT_TRUE(queue.push(kB, RequestId(3), 60, kStart));
}

TEST(WaitQueue, ForgetsOneThatLeft) {
  WaitQueue queue{Config{}};
  for (std::uint64_t i = 1; i <= 3; ++i) EXPECT_TRUE(queue.push(kA, RequestId(i), 1, kStart));
  EXPECT_FALSE(queue.remove(kB, RequestId(2)));
  EXPECT_TRUE(queue.remove(kA, RequestId(2)));
  EXPECT_FALSE(queue.remove(kA, RequestId(2)));
  EXPECT_EQ(queue.next(RequestId(1)), RequestId(3));
  EXPECT_EQ(queue.size(kA), 2u);
}

TEST(WaitQueue, GivesOutTheOldestOfAllModelsAtItsDeadline) {
  WaitQueue queue{Config{.queue_requests_max = 9, .queue_bytes_max = {99},
                         .queue_wait_max = seconds(10)}};
  EXPECT_EQ(queue.next_deadline(), kNever);
  EXPECT_TRUE(queue.push(kB, RequestId(1), 1, kStart));
  EXPECT_TRUE(queue.push(kA, RequestId(2), 1, kStart + seconds(1)));
  EXPECT_EQ(queue.next_deadline(), kStart + seconds(10));
  EXPECT_EQ(queue.pop_expired(kStart + seconds(9)), RequestId());
  EXPECT_EQ(queue.pop_expired(kStart + seconds(10)), RequestId(1));
  EXPECT_EQ(queue.pop_expired(kStart + seconds(10)), RequestId());
  EXPECT_EQ(queue.next_deadline(), kStart + seconds(11));
}

TEST(WaitQueue, WhoComesBackGetsItsPlaceAndItsDeadlineBack) {
  WaitQueue queue(Config{});
  for (std::uint64_t i = 1; i <= 4; ++i) {
    EXPECT_TRUE(queue.push(kA, RequestId(i), 1, kStart + seconds(static_cast<int>(i))));
  }
  EXPECT_TRUE(queue.push(kB, RequestId(9), 1, kStart + seconds(2)));
  queue.stop_at(RequestId(3));
  queue.pop(kA);
  EXPECT_TRUE(queue.remove(kA, RequestId(3)));
  EXPECT_TRUE(queue.push(kA, RequestId(3), 1, kStart + seconds(3)));
  EXPECT_TRUE(queue.push(kA, RequestId(1), 1, kStart + seconds(1)));
  std::vector<std::uint64_t> order;
  for (RequestId id = queue.front(kA); id; id = queue.next(id)) order.push_back(id.value());
  EXPECT_EQ(order, (std::vector<std::uint64_t>{1, 2, 3, 4}));
  const Instant late = kStart + seconds(1000);
  order.clear();
  while (const RequestId id = queue.pop_expired(late)) order.push_back(id.value());
  EXPECT_EQ(order, (std::vector<std::uint64_t>{1, 2, 9, 3, 4}));
  EXPECT_EQ(queue.size(), 0u);
}

TEST(WaitQueue, AppliesNewLimitsToThoseWhoWait) {
  WaitQueue queue{Config{}};
  EXPECT_TRUE(queue.push(kA, RequestId(1), 1, kStart));
  queue.set_config(Config{.queue_requests_max = 0, .queue_bytes_max = {0},
                          .queue_wait_max = Duration::max()});
  EXPECT_EQ(queue.next_deadline(), kNever);
  EXPECT_EQ(queue.front(kA), RequestId(1));
  EXPECT_FALSE(queue.push(kA, RequestId(2), 0, kStart));
}

RC_GTEST_PROP(WaitQueueLaw, AnswersLikeAPlainList, (std::uint64_t seed)) {
  struct Waiting {
    ModelId model;
    RequestId request;
    std::int64_t bytes;
    Instant since;
  };
  Rng rng(seed, "queue");
  const Config config{.queue_requests_max = 12, .queue_bytes_max = {500},
                      .queue_wait_max = seconds(20)};
  WaitQueue queue(config);
  std::list<Waiting> list;
  Instant now = kStart;
  const auto first = [&](ModelId model) {
    return std::ranges::find(list, model, &Waiting::model);
  };
  for (std::uint64_t i = 1; i < 400; ++i) {
    now += seconds(static_cast<std::int64_t>(rng.below(3)));
    const ModelId model(1 + static_cast<std::uint32_t>(rng.below(3)));
    std::int64_t bytes = 0;
    for (const Waiting& w : list) bytes += w.bytes;
    switch (rng.below(5)) {
      default: {
        const auto more = static_cast<std::int64_t>(rng.below(120));
        const bool fits = list.size() < 12 && bytes + more <= 500;
        RC_ASSERT(queue.push(model, RequestId(i), more, now) == fits);
        if (fits) list.push_back({model, RequestId(i), more, now});
        break;
      }
      case 0:
        if (first(model) == list.end()) break;
        queue.pop(model);
        list.erase(first(model));
        break;
      case 1: {
        const RequestId id(rng.below(i) + 1);
        const auto at = std::ranges::find(list, id, &Waiting::request);
        const bool waits = at != list.end() && at->model == model;
        RC_ASSERT(queue.remove(model, id) == waits);
        if (waits) list.erase(at);
        break;
      }
      case 2: {
        const bool due = !list.empty() && list.front().since + seconds(20) <= now;
        RC_ASSERT(queue.pop_expired(now) == (due ? list.front().request : RequestId()));
        if (due) list.pop_front();
        break;
      }
    }
    std::int64_t held = 0;
    std::set<ModelId> models;
    for (const Waiting& w : list) {
      held += w.bytes;
      models.insert(w.model);
    }
    RC_ASSERT(queue.bytes() == held);
    RC_ASSERT(queue.size() == list.size());
    RC_ASSERT(queue.models() == std::vector<ModelId>(models.begin(), models.end()));
    for (const ModelId m : models) RC_ASSERT(queue.front(m) == first(m)->request);
  }
}

// Those before the stop come and go; a walk is taken up by whoever is next there.
RC_GTEST_PROP(WaitQueue, GoesOnWhereAWalkStopped, (std::uint64_t seed)) {
  Rng rng(seed, "walk");
  const ModelId model(1);
  WaitQueue queue({.queue_requests_max = 50});
  std::list<std::uint64_t> list;
  std::uint64_t stop = 0;  // 0: the front
  for (std::uint64_t i = 1; i < 300; ++i) {
    const auto any = [&] {
      return std::next(list.begin(), static_cast<std::ptrdiff_t>(rng.below(list.size())));
    };
    switch (list.empty() ? 9 : rng.below(10)) {
      default: {
        const auto at = any();
        const auto behind = std::next(at);
        if (stop == *at) stop = behind == list.end() ? 0 : *behind;
        RC_ASSERT(queue.remove(model, RequestId(*at)));
        list.erase(at);
        break;
      }
      case 0:
        stop = *any();
        queue.stop_at(RequestId(stop));
        break;
      case 1:
        RC_ASSERT(queue.resume(model) == RequestId(stop == 0 ? list.front() : stop));
        stop = 0;
        break;
      case 5: case 6: case 7: case 8: case 9:
        if (list.size() == 50) break;
        RC_ASSERT(queue.push(model, RequestId(i), 0, kStart));
        list.push_back(i);
        break;
    }
  }
}

}  // namespace
}  // namespace signalbox::admission
