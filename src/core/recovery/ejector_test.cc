// SPDX-License-Identifier: Apache-2.0
// Goal: who is out, when, and for how long. Method: small pools and a hand-driven clock; a law over
// random histories for the share that stays in and the single probe.
#include "core/recovery/ejector.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>

#include "base/rng.h"

namespace signalbox::recovery {
namespace {

using model::EndpointId;
using model::PoolId;
using std::chrono::milliseconds;
using std::chrono::seconds;

const PoolId kPool(1);
const EndpointId kA(1), kB(2), kC(3), kD(4);
const Instant kStart{seconds(100)};

struct Fleet {
  explicit Fleet(std::uint32_t size, double share = 0.5) {
    for (std::uint32_t e = 1; e <= size; ++e) ejector.add(EndpointId(e), kPool, share);
  }
  void call(EndpointId e, Health health, int times = 1) {
    for (int i = 0; i < times; ++i) ejector.ended(e, ejector.dispatched(e), health, now);
  }
  void pass(Duration d) {
    now += d;
    ejector.advance(now);
  }
  Ejector ejector{Config{}};
  Instant now = kStart;
};

TEST(Ejector, EjectsAfterFiveFailuresInARow) {
  Fleet f(4);
  f.call(kA, Health::Bad, 4);
  f.call(kA, Health::Good);
  f.call(kA, Health::Bad, 4);
  EXPECT_TRUE(f.ejector.accepts(kA));
  f.call(kA, Health::Bad);
  EXPECT_EQ(f.ejector.standing(kA), Standing::Out);
  EXPECT_EQ(f.ejector.next_wake(), kStart + seconds(5));
}

TEST(Ejector, NeitherOpensNorClosesOnWhatTheClientDid) {
  Fleet f(4);
  f.call(kA, Health::Neutral, 100);
  EXPECT_TRUE(f.ejector.accepts(kA));
  f.call(kA, Health::Bad, 4);
  f.call(kA, Health::Neutral);
  f.call(kA, Health::Bad);
  EXPECT_FALSE(f.ejector.accepts(kA));
}

TEST(Ejector, SendsExactlyOneProbeAfterFiveSeconds) {
  Fleet f(4);
  f.call(kA, Health::Bad, 5);
  f.pass(milliseconds(4999));
  EXPECT_FALSE(f.ejector.accepts(kA));
  f.pass(milliseconds(1));
  EXPECT_EQ(f.ejector.standing(kA), Standing::ProbeReady);
  EXPECT_TRUE(f.ejector.accepts(kA));
  const Pass probe = f.ejector.dispatched(kA);
  EXPECT_TRUE(probe.probe);
  EXPECT_FALSE(f.ejector.accepts(kA));
  f.pass(seconds(60));
  EXPECT_FALSE(f.ejector.accepts(kA)) << "the probe has not ended";
  f.ejector.ended(kA, probe, Health::Good, f.now);
  EXPECT_EQ(f.ejector.standing(kA), Standing::In);
  EXPECT_EQ(f.ejector.failure_risk(kA, f.now), 0);
}

TEST(Ejector, PutsAFailedProbeOutForAnotherFiveSeconds) {
  Fleet f(4);
  f.call(kA, Health::Bad, 5);
  f.pass(seconds(5));
  f.call(kA, Health::Bad);
  EXPECT_EQ(f.ejector.standing(kA), Standing::Out);
  EXPECT_EQ(f.ejector.next_wake(), f.now + seconds(5));
}

TEST(Ejector, TriesAgainWhenAProbeSaysNothing) {
  Fleet f(4);
  f.call(kA, Health::Bad, 5);
  f.pass(seconds(5));
  f.call(kA, Health::Neutral);
  EXPECT_EQ(f.ejector.standing(kA), Standing::ProbeReady);
}

TEST(Ejector, ReadmitsOnTrialAProbeThatStreamsLong) {
  Fleet f(4);
  f.call(kA, Health::Bad, 5);
  f.pass(seconds(5));
  const Pass probe = f.ejector.dispatched(kA);
  f.ejector.first_token(kA, probe, f.now);
  f.pass(milliseconds(4999));
  EXPECT_EQ(f.ejector.standing(kA), Standing::Probing);
  f.pass(milliseconds(1));
  EXPECT_EQ(f.ejector.standing(kA), Standing::In);
  f.ejector.ended(kA, probe, Health::Bad, f.now);
  EXPECT_EQ(f.ejector.standing(kA), Standing::Out);
}

TEST(Ejector, IgnoresWhatWasUnderWayWhenTheEndpointWentOut) {
  Fleet f(4);
  const Pass good = f.ejector.dispatched(kA);
  const Pass bad = f.ejector.dispatched(kA);
  f.call(kA, Health::Bad, 5);
  f.ejector.ended(kA, good, Health::Good, f.now);
  EXPECT_EQ(f.ejector.standing(kA), Standing::Out);
  f.pass(seconds(5));
  f.call(kA, Health::Good);
  f.ejector.ended(kA, bad, Health::Bad, f.now);
  EXPECT_EQ(f.ejector.failure_risk(kA, f.now), 0);
}

TEST(Ejector, KeepsAShareOfThePoolIn) {
  Fleet f(4, 0.5);
  for (const EndpointId e : {kA, kB, kC, kD}) f.call(e, Health::Bad, 50);
  EXPECT_FALSE(f.ejector.accepts(kA));
  EXPECT_FALSE(f.ejector.accepts(kB));
  EXPECT_TRUE(f.ejector.accepts(kC));
  EXPECT_TRUE(f.ejector.accepts(kD));
}

TEST(Ejector, NeverEjectsTheOnlyEndpoint) {
  Fleet f(1, 0.5);
  f.call(kA, Health::Bad, 50);
  EXPECT_TRUE(f.ejector.accepts(kA));
}

TEST(Ejector, LetsTheLeastBadTakeTurnsAndReadmitsItAtItsFirstSuccess) {
  Fleet f(3, 1.0);
  for (const EndpointId e : {kA, kB, kC}) {
    f.call(e, Health::Bad, 5);
    f.pass(milliseconds(1));
  }
  std::vector<EndpointId> turns;
  for (int i = 0; i < 6; ++i) {
    const EndpointId e = f.ejector.least_bad(kPool, {});
    turns.push_back(e);
    f.pass(milliseconds(1));
    f.call(e, Health::Bad);
  }
  EXPECT_EQ(turns, (std::vector<EndpointId>{kA, kB, kC, kA, kB, kC}));
  // The fleet recovers: the very next request brings its endpoint back, long before any probe.
  const EndpointId e = f.ejector.least_bad(kPool, {});
  f.call(e, Health::Good);
  EXPECT_EQ(f.ejector.standing(e), Standing::In);
  EXPECT_LT(f.now, kStart + seconds(1));
}

TEST(Ejector, SkipsTheEndpointsThatARequestTriedAlready) {
  Fleet f(3, 1.0);
  for (const EndpointId e : {kA, kB, kC}) f.call(e, Health::Bad, 5);
  const EndpointId tried[] = {kA, kB};
  EXPECT_EQ(f.ejector.least_bad(kPool, tried), kC);
  const EndpointId all[] = {kA, kB, kC};
  EXPECT_EQ(f.ejector.least_bad(kPool, all), EndpointId());
}

TEST(Ejector, SeesARiskAfterTheFirstFailureThatFades) {
  Fleet f(4);
  EXPECT_EQ(f.ejector.failure_risk(kA, f.now), 0);
  f.call(kA, Health::Bad);
  EXPECT_DOUBLE_EQ(f.ejector.failure_risk(kA, f.now), 0.5);
  EXPECT_LT(f.ejector.failure_risk(kA, f.now + seconds(30)), 0.02);
}

TEST(Ejector, TellsChangesOnce) {
  Fleet f(4);
  f.call(kA, Health::Bad, 5);
  f.call(kB, Health::Bad, 5);
  EXPECT_EQ(f.ejector.take_changes(), (std::vector<EndpointId>{kA, kB}));
  EXPECT_TRUE(f.ejector.take_changes().empty());
  f.pass(seconds(5));
  f.ejector.remove(kA);
  EXPECT_EQ(f.ejector.take_changes(), (std::vector<EndpointId>{kB}));
}

TEST(Ejector, TheLastOnesOfAPoolStayInAndAreNotTrusted) {
  Fleet f(1);
  EXPECT_TRUE(f.ejector.trusted(kA));
  f.call(kA, Health::Bad, 4);
  EXPECT_TRUE(f.ejector.trusted(kA));
  f.ejector.take_changes();
  f.call(kA, Health::Bad);
  EXPECT_TRUE(f.ejector.accepts(kA)) << "half of one is none";
  EXPECT_FALSE(f.ejector.trusted(kA));
  EXPECT_EQ(f.ejector.take_changes(), std::vector{kA});
  f.pass(seconds(5));
  EXPECT_TRUE(f.ejector.trusted(kA)) << "when an ejection would have been over";
  EXPECT_EQ(f.ejector.take_changes(), std::vector{kA});
  f.call(kA, Health::Bad);
  EXPECT_FALSE(f.ejector.trusted(kA)) << "and no more at the next failure";
  f.call(kA, Health::Good);
  EXPECT_TRUE(f.ejector.trusted(kA));
  EXPECT_EQ(f.ejector.next_wake(), kNever);
}

TEST(Health, TakesTheEnginesFaultsAlone) {
  using R = model::AttemptResult;
  for (const R r : {R::Unfit, R::ServerError, R::ConnectError, R::Reset, R::Truncated,
                    R::StreamError,
                    R::FirstTokenTimeout, R::IdleTimeout}) {
    EXPECT_EQ(health(r), Health::Bad);
  }
  for (const R r : {R::ClientError, R::Throttled, R::Aborted, R::Shortage, R::Overrun}) {
    EXPECT_EQ(health(r), Health::Neutral);
  }
  EXPECT_EQ(health(R::Ok), Health::Good);
}

TEST(Ejector, WhoHasJustFailedRestsForAMomentThatDoubles) {
  Fleet f(1, 0);
  EXPECT_LE(f.ejector.rests_until(kA, f.now), f.now);
  std::vector<Duration> rests;
  for (int i = 0; i < 8; ++i) {
    f.call(kA, Health::Bad);
    f.ejector.tried(kA, f.now);
    rests.push_back(f.ejector.rests_until(kA, f.now) - f.now);
    f.pass(milliseconds(1));
  }
  for (int i = 0; i < 8; ++i) EXPECT_EQ(rests[i], milliseconds(std::min(512, 8 << i)));
  f.pass(milliseconds(500));
  f.ejector.tried(kA, f.now);
  EXPECT_EQ(f.ejector.rests_until(kA, f.now) - f.now, milliseconds(512)) << "one at a time";
  f.ejector.first_token(kA, f.ejector.dispatched(kA), f.now);
  EXPECT_LE(f.ejector.rests_until(kA, f.now), f.now) << "it answers";
  f.call(kA, Health::Bad);
  EXPECT_GT(f.ejector.rests_until(kA, f.now), f.now);
  f.pass(milliseconds(500));
  f.call(kA, Health::Bad);  // was sent before
  EXPECT_LE(f.ejector.rests_until(kA, f.now) - f.now, milliseconds(12));
  f.call(kA, Health::Good);
  EXPECT_LE(f.ejector.rests_until(kA, f.now), f.now) << "it works";
}

TEST(Ejector, WhoFailsForAsLongAsAnEjectionIsDownAndNeedsNoRest) {
  Fleet f(1, 0);
  for (int i = 0; i < 52; ++i) {
    f.ejector.tried(kA, f.now);
    f.call(kA, Health::Bad);
    EXPECT_EQ(f.ejector.rests_until(kA, f.now) > f.now, i <= 50) << i;
    f.pass(milliseconds(100));
  }
  f.pass(seconds(6));
  f.call(kA, Health::Bad);
  EXPECT_GT(f.ejector.rests_until(kA, f.now), f.now) << "another row";
}

RC_GTEST_PROP(EjectorLaw, KeepsTheShareInAndOneProbeAtATime, (std::uint64_t seed)) {
  Rng rng(seed, "ejector");
  const auto size = 1 + static_cast<std::uint32_t>(rng.below(8));
  const double share = rng.uniform();
  Fleet f(size, share);
  std::vector<std::pair<EndpointId, Pass>> open;
  std::map<EndpointId, int> probes;
  for (int i = 0; i < 400; ++i) {
    const EndpointId e(1 + static_cast<std::uint32_t>(rng.below(size)));
    if (rng.chance(0.5)) {
      const Pass pass = f.ejector.dispatched(e);
      probes[e] += pass.probe ? 1 : 0;
      open.emplace_back(e, pass);
    } else if (!open.empty()) {
      const std::size_t k = rng.below(open.size());
      const auto [to, pass] = open[k];
      open.erase(open.begin() + static_cast<std::ptrdiff_t>(k));
      probes[to] -= pass.probe ? 1 : 0;
      const Health health = rng.chance(0.7) ? Health::Bad
                            : rng.chance(0.5) ? Health::Good : Health::Neutral;
      f.ejector.ended(to, pass, health, f.now);
    }
    f.pass(milliseconds(static_cast<std::int64_t>(rng.below(1500))));
    std::uint32_t out = 0;
    for (std::uint32_t k = 1; k <= size; ++k) {
      const EndpointId id(k);
      out += f.ejector.standing(id) != Standing::In ? 1u : 0u;
      RC_ASSERT(f.ejector.standing(id) != Standing::Probing || probes[id] > 0);
    }
    RC_ASSERT(out <= share * size + 1e-9);
    RC_ASSERT(f.ejector.next_wake() > f.now);
  }
  // Whatever happened, success heals everybody.
  for (std::uint32_t k = 1; k <= size; ++k) f.call(EndpointId(k), Health::Good);
  for (std::uint32_t k = 1; k <= size; ++k) {
    RC_ASSERT(f.ejector.standing(EndpointId(k)) == Standing::In);
  }
}

}  // namespace
}  // namespace signalbox::recovery
