// SPDX-License-Identifier: Apache-2.0
// The fuzzer's own laws: what is drawn heals, what holds is let pass, what breaks is made small.
#include "sim/fuzz.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "sim/run.h"

namespace signalbox::sim {
namespace {

bool has(const Scenario& s, Fault::Kind kind) {
  return std::ranges::any_of(s.faults, [&](const Fault& f) { return f.kind == kind; });
}

TEST(Fuzz, TheSameSeedDrawsTheSameWorld) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Scenario a = fuzz_scenario(seed), b = fuzz_scenario(seed);
    EXPECT_EQ(a.load.requests, b.load.requests);
    ASSERT_EQ(a.faults.size(), b.faults.size());
    for (std::size_t i = 0; i < a.faults.size(); ++i) {
      EXPECT_EQ(a.faults[i].at, b.faults[i].at);
      EXPECT_EQ(a.faults[i].lasts, b.faults[i].lasts);
    }
  }
  EXPECT_EQ(run(fuzz_scenario(3)).digest, run(fuzz_scenario(3)).digest);
}

TEST(Fuzz, WorldsHold) {
  double hours = 0;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const FuzzVerdict verdict = judge_fuzz(fuzz_scenario(seed));
    EXPECT_EQ(verdict.violation, "") << "seed " << seed;
    hours += verdict.scenario_hours;
  }
  EXPECT_GT(hours, 0);
}

// Worlds that broke once, with what broke in them: one engine for two notices; a queue whose front
// has no place; more requests than routing can count; answers believed to be beyond all memory;
// ejections longer than the world; a place that changes hands between two looks of the checker.
TEST(Fuzz, WorldsThatBrokeOnceHold) {
  for (const std::uint64_t seed : {4u, 57u, 64u, 237u, 1296u, 3807u, 12270u, 33591u}) {
    EXPECT_EQ(judge_fuzz(fuzz_scenario(seed)).violation, "") << "seed " << seed;
  }
}

TEST(Fuzz, WhatBreaksIsMadeSmall) {
  Scenario s = fuzz_scenario(2);
  s.groups.resize(1);
  s.groups.push_back(s.groups[0]);
  s.groups[0].count = 8;
  s.faults.clear();
  for (int i = 0; i < 9; ++i) {
    s.faults.push_back({i == 5 ? Fault::Kind::Die : Fault::Kind::Slow, Instant{}, {}, 0, 2});
  }
  s.disorder.late = 0.1;
  s.load.requests = 1000;
  int calls = 0;
  const Scenario small = shrink(
      s,
      [&](const Scenario& x) {
        ++calls;
        return has(x, Fault::Kind::Die) && x.load.requests >= 10 && x.groups[0].count >= 2;
      },
      1000);
  EXPECT_EQ(small.faults.size(), 1u);
  EXPECT_LT(small.load.requests, 20);
  EXPECT_EQ(small.groups.size(), 1u);
  EXPECT_LE(small.groups[0].count, 3);
  EXPECT_EQ(small.disorder.late, 0);
  EXPECT_LT(calls, 200);
}

TEST(Fuzz, TriesAreBounded) {
  int calls = 0;
  shrink(fuzz_scenario(2), [&](const Scenario&) { return ++calls > 0; }, 7);
  EXPECT_EQ(calls, 7);
}

}  // namespace
}  // namespace signalbox::sim
