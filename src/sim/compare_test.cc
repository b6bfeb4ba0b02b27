// SPDX-License-Identifier: Apache-2.0
// Goal: a comparison is fair and its numbers mean what they say. Method: small traces whose
// capacity is known by hand, and runs near it.
#include "sim/compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <set>

#include "sim/capacity.h"
#include "sim/run.h"

namespace signalbox::sim {
namespace {

// Calls of one conversation each, `prompt` tokens of which the first `shared` are the same.
trace::Trace calls(int count, double per_second, std::int64_t shared, std::int64_t prompt,
                   std::int64_t output) {
  trace::Trace t;
  if (shared > 0) t.pieces.push_back({-1, 1, shared, false});
  for (int i = 0; i < count; ++i) {
    const auto index = static_cast<std::int32_t>(t.pieces.size());
    t.pieces.push_back({shared > 0 ? 0 : -1, static_cast<std::uint64_t>(100 + i), prompt - shared,
                        false});
    trace::Call call;
    call.at = from_seconds(i / per_second);
    call.last = index;
    call.prompt_tokens = prompt;
    call.output_tokens = output;
    call.answer = static_cast<std::uint64_t>(1'000'000 + i);
    t.calls.push_back(call);
  }
  t.lasts = from_seconds(count / per_second);
  return t;
}

// 1 ms per 100 prompt tokens; steps of 10 ms and 0.1 ms per sequence.
EngineGroup plain_engines(int count) {
  EngineGroup group;
  group.count = count;
  group.spec.table = truth::StepTable::formula(0, 0.01, 0, 10, 0.1, 0);
  group.spec.kv_tokens = 100'000;
  group.spec.distortion = group.spec.noise = 0;
  group.spec.host_step_us = group.spec.host_sequence_us = group.spec.host_admission_us = 0;
  return group;
}

TEST(Capacity, IsTheSumOfWhatEnginesCanDo) {
  const Capacity c = capacity({plain_engines(2)}, calls(50, 1, 0, 900, 200));
  // 50,000 tokens of batch over 1,000 each: 50 at once, steps of 15 ms.
  const double each = 0.009 + 200 * 0.015 / 50;
  EXPECT_NEAR(c.requests_per_second, 2 / each, 0.01 * 2 / each);
  EXPECT_EQ(c.cached_share, 0);
  EXPECT_NEAR(c.service_seconds, 0.009 + 200 * 0.015, 0.01);
}

TEST(Capacity, WhatIsCachedCostsNoPrefill) {
  const Capacity none = capacity({plain_engines(2)}, calls(50, 1, 0, 3000, 1));
  const Capacity shared = capacity({plain_engines(2)}, calls(50, 1, 2700, 3000, 1));
  EXPECT_NEAR(shared.cached_share, 0.9 * 49 / 50, 1e-6);
  EXPECT_GT(shared.requests_per_second, 5 * none.requests_per_second);
}

TEST(Capacity, ACacheThatIsTooSmallHoldsNothing) {
  trace::Trace t = calls(40, 1, 0, 30'000, 1);
  const trace::Trace once = t;
  for (trace::Call call : once.calls) {
    call.at += t.lasts;
    t.calls.push_back(call);
  }
  EXPECT_EQ(capacity({plain_engines(2)}, t).cached_share, 0);
  EXPECT_NEAR(capacity({plain_engines(40)}, t).cached_share, 0.5, 1e-6);
}

Scenario base() {
  Scenario s;
  s.seed = 3;
  s.groups = {plain_engines(4)};
  s.load.leavers = s.load.plain = s.load.capped = 0;
  s.load.trace = std::make_shared<const trace::Trace>(calls(2000, 10, 300, 900, 200));
  return s;
}

// Below capacity nearly everybody is served in time; far above it the queue grows without end.
TEST(Compare, LoadIsAShareOfWhatCanBeServed) {
  const auto at = [](double load) {
    auto s = at_load(base(), load, std::chrono::seconds(20), std::chrono::seconds(60));
    EXPECT_TRUE(s.has_value());
    return row(*s, load, run(*s));
  };
  const Row half = at(0.5);
  EXPECT_GT(half.goodput, 0.99);
  EXPECT_GT(half.tasks, 1000);
  EXPECT_NEAR(half.tpot_mean_s, 0.0125, 0.004);
  EXPECT_LT(at(1.5).goodput, 0.9);
}

TEST(Compare, SessionsWithoutStartsComeToTheSameRate) {
  trace::Trace t = calls(400, 10, 0, 900, 50);
  for (std::int32_t i = 0; i < 400; i += 4) {
    t.sessions.push_back({i, 4, Duration(-1)});
    for (std::int32_t k = 0; k < 4; ++k) {
      trace::Call& call = t.calls[static_cast<std::size_t>(i + k)];
      call.at = Duration::zero();
      call.after = k == 0 ? -1 : i + k - 1;
      call.think = std::chrono::seconds(5);
    }
  }
  ASSERT_EQ(fault_of(t), std::nullopt);
  Scenario s = base();
  const double rate = 0.4 * capacity(s.groups, t).requests_per_second;
  s.load.trace = std::make_shared<const trace::Trace>(t);
  s.load.ramp = std::chrono::seconds(5);
  auto scaled = at_load(s, 0.4, std::chrono::seconds(30), std::chrono::seconds(60));
  ASSERT_TRUE(scaled.has_value());
  const Report report = run(*scaled);
  EXPECT_TRUE(report.violations.empty()) << text(report);
  EXPECT_NEAR(static_cast<double>(report.tasks) / 60, rate, 0.1 * rate);
}

TEST(Compare, NamesOfPolicies) {
  const auto all = policies_of("all");
  ASSERT_TRUE(all.has_value());
  EXPECT_EQ(all->front(), "signalbox");
  EXPECT_EQ(std::set<std::string>(all->begin(), all->end()).size(), all->size());
  EXPECT_GE(all->size(), 16u);
  EXPECT_EQ(policies_of("random,signalbox")->size(), 2u);
  EXPECT_FALSE(policies_of("random,signalbocks").has_value());
  EXPECT_FALSE(policies_of("").has_value());
}

Row fake(const std::string& policy, std::uint64_t seed, double e2e) {
  Row r;
  r.policy = policy;
  r.seed = seed;
  r.e2e_mean_s = e2e;
  return r;
}

TEST(Compare, SummariesArePairedBySeed) {
  // Seeds differ much, the policies always by a tenth: the pairs tell, the means would not.
  std::vector<Row> rows;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    const auto e2e = static_cast<double>(seed * seed);
    rows.push_back(fake("signalbox", seed, e2e));
    rows.push_back(fake("random", seed, e2e * (seed % 2 == 0 ? 1.11 : 1.09)));
  }
  rows.push_back(fake("random", 9, 1000));  // no pair
  const auto summaries = summarise(rows);
  ASSERT_EQ(summaries.size(), 2u);
  EXPECT_EQ(summaries[0].change, 0);
  EXPECT_DOUBLE_EQ(summaries[0].mean.e2e_mean_s, 7.5);
  EXPECT_NEAR(summaries[1].change, (std::log(1.09) + std::log(1.11)) / 2, 1e-9);
  const double deviation = (std::log(1.11) - std::log(1.09)) / 2 * std::sqrt(4.0 / 3);
  EXPECT_NEAR(summaries[1].interval, 3.182 * deviation / 2, 1e-9);
}

}  // namespace
}  // namespace signalbox::sim
