// SPDX-License-Identifier: Apache-2.0
// Goal: the books agree under every key. Method: small cases by hand, and random histories with
// retries, price changes and endpoints that leave while they work.
#include "core/ledger/ledger.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

#include "base/rng.h"

namespace signalbox::ledger {
namespace {

using model::EndpointId;
using model::ModelId;
using model::Outcome;
using model::PoolId;
using model::RequestId;
using model::TenantId;
using model::Usage;
using std::chrono::seconds;

const Instant kStart{seconds(1000)};
const EndpointId kA(1), kB(2);
const ModelId kModel(1);

TEST(Ledger, AddsTheCostOfAllAttemptsToTheRequest) {
  Ledger ledger{Config{}};
  ledger.endpoint_added(kA, PoolId(1), kModel, 3.6, kStart);
  ledger.endpoint_added(kB, PoolId(2), kModel, 7.2, kStart);
  ledger.arrived(RequestId(1), TenantId(4));
  ledger.started(RequestId(1), kA, 1, kStart + seconds(1));
  EXPECT_EQ(ledger.ended(RequestId(1), {}, kStart + seconds(2)).nanodollars, 1'000'000);
  ledger.started(RequestId(1), kB, 1, kStart + seconds(2));
  EXPECT_EQ(ledger.ended(RequestId(1), {100, 60, 20}, kStart + seconds(4)).nanodollars, 4'000'000);
  const Cost cost = ledger.concluded(RequestId(1), Outcome::Completed, kModel);
  EXPECT_EQ(cost, (Cost{seconds(3), 5'000'000}));
  EXPECT_EQ(ledger.tenant(TenantId(4)).busy, cost);
  EXPECT_EQ(ledger.tenant(TenantId(4)).cached_tokens, 60);
  EXPECT_EQ(ledger.model(kModel).attempts, 2u);
  EXPECT_EQ(ledger.model(kModel).count(Outcome::Completed), 1u);
  EXPECT_EQ(ledger.pool(PoolId(2)).completion_tokens, 20);
  EXPECT_EQ(ledger.endpoint(kA).idle.engine_time, seconds(1));
  EXPECT_EQ(ledger.in_flight(), 0u);
}

TEST(Ledger, PaysForARemovedEndpointUntilItsLastRequestEnds) {
  Ledger ledger{Config{}};
  ledger.endpoint_added(kA, PoolId(1), kModel, 3.6, kStart);
  ledger.arrived(RequestId(1), {});
  ledger.started(RequestId(1), kA, 1, kStart);
  ledger.endpoint_removed(kA, kStart + seconds(5));
  EXPECT_EQ(ledger.ended(RequestId(1), {}, kStart + seconds(8)).engine_time, seconds(8));
  ledger.settle(kStart + seconds(100));
  EXPECT_EQ(ledger.all().idle, Cost{});
  EXPECT_EQ(ledger.endpoint(kA).attempts, 0u) << "its own totals are gone";
  EXPECT_EQ(ledger.pool(PoolId(1)).busy.engine_time, seconds(8));
}

TEST(Ledger, ShowsWhatIsOpen) {
  Ledger ledger{Config{}};
  ledger.endpoint_added(kA, PoolId(1), kModel, 3.6, kStart);
  ledger.arrived(RequestId(1), {});
  ledger.started(RequestId(1), kA, 1, kStart);
  ledger.settle(kStart + seconds(2));
  EXPECT_EQ(ledger.open(kA).engine_time, seconds(2));
  EXPECT_EQ(ledger.all().busy, Cost{});
}

TEST(Ledger, SumsKeysBeyondTheLimitTogether) {
  Ledger ledger{Config{.keys_max = 2}};
  for (std::uint32_t i = 1; i <= 1000; ++i) {
    ledger.arrived(RequestId(i), TenantId(i));
    ledger.concluded(RequestId(i), Outcome::QueueFull, kModel);
  }
  EXPECT_EQ(ledger.tenant(TenantId(2)).ended(), 1u);
  EXPECT_EQ(ledger.tenant(TenantId(0)).ended(), 998u);
  EXPECT_EQ(ledger.all().ended(), 1000u);
}

TEST(LedgerDeathTest, StopsAtASecondOutcome) {
  Ledger ledger{Config{}};
  ledger.arrived(RequestId(1), {});
  ledger.concluded(RequestId(1), Outcome::Completed, kModel);
  EXPECT_DEATH(ledger.concluded(RequestId(1), Outcome::Completed, kModel), "requests_");
}

TEST(LedgerDeathTest, StopsAtAnOutcomeWhileAnEngineRuns) {
  Ledger ledger{Config{}};
  ledger.endpoint_added(kA, PoolId(1), kModel, 3.6, kStart);
  ledger.arrived(RequestId(1), {});
  ledger.started(RequestId(1), kA, 1, kStart);
  EXPECT_DEATH(ledger.concluded(RequestId(1), Outcome::Completed, kModel), "endpoint");
}

TEST(Ledger, BooksAnAttemptUnderTheModelThatItsEndpointServedWhenItStarted) {
  Ledger ledger{Config{}};
  const ModelId other(2);
  ledger.endpoint_added(kA, PoolId(1), kModel, 3.6, kStart);
  for (const std::uint64_t id : {1, 2}) ledger.arrived(RequestId(id), {});
  ledger.started(RequestId(1), kA, 1, kStart);
  ledger.endpoint_changed(kA, other, 3.6, kStart);
  ledger.ended(RequestId(1), {10, 0, 1}, kStart);
  ledger.started(RequestId(2), kA, 1, kStart);
  ledger.ended(RequestId(2), {20, 0, 1}, kStart);
  EXPECT_EQ(ledger.model(kModel).prompt_tokens, 10);
  EXPECT_EQ(ledger.model(other).prompt_tokens, 20);
}

// Drives a ledger at random and keeps the sums that must come out.
struct History {
  explicit History(std::uint64_t seed) : rng(seed, "ledger") {}

  void add() {
    const EndpointId id(++endpoints_made);
    const double price = rng.uniform(0, 5);
    ledger.endpoint_added(id, PoolId(1 + id.value() % 3), ModelId(1 + id.value() % 2), price, now);
    live.insert(id);
  }
  template <typename Set>
  auto any(const Set& set) {
    return *std::next(set.begin(), static_cast<std::ptrdiff_t>(rng.below(set.size())));
  }
  void step() {
    now += Duration(static_cast<std::int64_t>(rng.exponential(1e8)));
    switch (rng.below(8)) {
      case 0: add(); break;
      case 1:
        if (live.empty()) break;
        if (const EndpointId gone = any(live); rng.chance(0.3)) {
          ledger.endpoint_removed(gone, now);
          live.erase(gone);
        }
        break;
      case 2:
        if (live.empty()) break;
        ledger.endpoint_changed(any(live), ModelId(1 + static_cast<std::uint32_t>(rng.below(2))),
                                rng.uniform(0, 5), now);
        break;
      case 3:
      case 4: {
        const RequestId id(++requests_made);
        ledger.arrived(id, TenantId(static_cast<std::uint32_t>(rng.below(4))));
        waiting.insert(id);
        break;
      }
      case 5:
        if (waiting.empty() || live.empty()) break;
        if (const RequestId id = any(waiting); true) {
          ledger.started(id, any(live), rng.exponential(1), now);
          waiting.erase(id);
          running.insert(id);
        }
        break;
      case 6:
        if (!running.empty()) end(any(running));
        break;
      default:
        if (!waiting.empty()) conclude(any(waiting));
    }
  }
  void end(RequestId id) {
    const auto prompt = static_cast<std::int64_t>(rng.below(1000));
    const Usage usage{rng.chance(0.2) ? -1 : prompt, prompt / 2, 7};
    ledger.ended(id, usage, now);
    prompt_tokens += std::max<std::int64_t>(0, usage.prompt_tokens);
    running.erase(id);
    waiting.insert(id);
  }
  void conclude(RequestId id) {
    const auto outcome = model::kOutcomes[rng.below(model::kOutcomes.size())];
    requests += ledger.concluded(id, outcome, ModelId(static_cast<std::uint32_t>(rng.below(3))));
    waiting.erase(id);
  }

  Rng rng;
  Ledger ledger{Config{}};
  Instant now = kStart;
  std::uint32_t endpoints_made = 0;
  std::uint64_t requests_made = 0;
  std::set<EndpointId> live;
  std::set<RequestId> waiting, running;
  Cost requests;
  std::int64_t prompt_tokens = 0;
};

template <typename Read>
Totals sum(std::uint32_t last, Read read) {
  Totals out;
  for (std::uint32_t i = 0; i <= last; ++i) {
    const Totals& t = read(i);
    for (std::size_t o = 0; o < out.outcomes.size(); ++o) out.outcomes[o] += t.outcomes[o];
    out.attempts += t.attempts;
    out.prompt_tokens += t.prompt_tokens;
    out.busy += t.busy;
    out.idle += t.idle;
  }
  return out;
}

RC_GTEST_PROP(LedgerLaw, SumsAgreeUnderEveryKeyOverRandomHistories, (std::uint64_t seed)) {
  History h(seed);
  h.add();
  for (int i = 0; i < 300; ++i) {
    h.step();
    RC_ASSERT(h.ledger.arrived() == h.ledger.all().ended() + h.ledger.in_flight());
  }
  while (!h.running.empty()) h.end(*h.running.begin());
  while (!h.waiting.empty()) h.conclude(*h.waiting.begin());
  h.ledger.settle(h.now);
  const Totals& all = h.ledger.all();
  const Totals tenants = sum(4, [&](auto i) -> auto& { return h.ledger.tenant(TenantId(i)); });
  const Totals models = sum(3, [&](auto i) -> auto& { return h.ledger.model(ModelId(i)); });
  const Totals pools = sum(3, [&](auto i) -> auto& { return h.ledger.pool(PoolId(i)); });
  RC_ASSERT(all.busy == h.requests);
  RC_ASSERT(tenants.busy == all.busy);
  RC_ASSERT(models.busy == all.busy);
  RC_ASSERT(pools.busy == all.busy);
  RC_ASSERT(pools.idle == all.idle);
  RC_ASSERT(tenants.outcomes == all.outcomes);
  RC_ASSERT(models.outcomes == all.outcomes);
  RC_ASSERT(all.prompt_tokens == h.prompt_tokens);
  RC_ASSERT(tenants.prompt_tokens == h.prompt_tokens);
  RC_ASSERT(pools.prompt_tokens == h.prompt_tokens);
  RC_ASSERT(pools.attempts == all.attempts);
  RC_ASSERT(h.ledger.open() == Cost{});
}

}  // namespace
}  // namespace signalbox::ledger
