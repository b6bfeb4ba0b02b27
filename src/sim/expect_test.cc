// SPDX-License-Identifier: Apache-2.0
// Goal: a line of expectation means what it says, and a wrong one says what would be right.
// Method: lines against reports made by hand.
#include "sim/expect.h"

#include <gtest/gtest.h>

namespace signalbox::sim {
namespace {

using namespace std::chrono_literals;
using Relation = Expectation::Relation;

Report some() {
  Report r;
  r.arrived = 100;
  r.outcomes[static_cast<std::size_t>(model::Outcome::Completed)] = 98;
  r.measured = r.elapsed = 10s;
  r.good = 50;
  for (int i = 1; i <= 100; ++i) r.ttft.record(0.01 * i);
  for (int i = 0; i < 100; ++i) {
    r.series.answered(Instant{} + 100ms * i, i < 50 ? 0.1 : 0.5, i >= 50);
  }
  return r;
}

bool holds(std::string_view line, const Report& report) {
  const auto parsed = parse_expectation(line);
  EXPECT_TRUE(parsed.has_value()) << line << ": " << (parsed ? "" : parsed.error().message);
  return parsed && judge(*parsed, report, &report).holds;
}

std::string wrong(std::string_view line) {
  const auto parsed = parse_expectation(line);
  return parsed ? "" : parsed.error().message;
}

TEST(Expectation, EachRelationHoldsWhereItShould) {
  const Report r = some();
  EXPECT_TRUE(holds("goodput == 5", r));
  EXPECT_TRUE(holds("goodput <= 5", r));
  EXPECT_TRUE(holds("goodput >= 5", r));
  EXPECT_FALSE(holds("goodput < 5", r));
  EXPECT_FALSE(holds("goodput > 5", r));
  EXPECT_TRUE(holds("goodput<5.1", r));
  EXPECT_TRUE(holds("goodput > 4.9", r));
  EXPECT_FALSE(holds("goodput == 5.1", r));
}

TEST(Expectation, ValuesComeInTheUnitOfTheirMetric) {
  const Report r = some();
  EXPECT_TRUE(holds("completed >= 98%", r));
  EXPECT_TRUE(holds("completed >= 0.98", r));
  EXPECT_FALSE(holds("completed > 98%", r));
  EXPECT_TRUE(holds("ttft.p50 < 510ms", r));
  EXPECT_FALSE(holds("ttft.p50 < 0.4s", r));
  EXPECT_TRUE(holds("outcome.completed == 98", r));
  EXPECT_NE(wrong("ttft.p99 < 2").find("`250ms`"), std::string::npos) << wrong("ttft.p99 < 2");
  EXPECT_NE(wrong("completed > 2s"), "");
  EXPECT_NE(wrong("goodput > 5%"), "");
  EXPECT_NE(wrong("requests > -5"), "");
  EXPECT_NE(wrong("requests > nan"), "");
}

TEST(Expectation, TheBaselineIsTheSameMetricOfTheOtherRun) {
  const Report with = some();
  Report without = some();
  without.good = 100;
  const auto share = parse_expectation("goodput >= 0.5 * baseline");
  ASSERT_TRUE(share.has_value());
  EXPECT_TRUE(share->baseline);
  EXPECT_TRUE(judge(*share, with, &without).holds);
  EXPECT_EQ(judge(*share, with, &without).bound, 5);
  const auto more = parse_expectation("goodput >= baseline*0.51");
  ASSERT_TRUE(more.has_value());
  EXPECT_FALSE(judge(*more, with, &without).holds);
  const auto all = parse_expectation("goodput < baseline");
  ASSERT_TRUE(all.has_value());
  EXPECT_TRUE(judge(*all, with, &without).holds);
  EXPECT_NE(wrong("goodput >= 0.5 * base"), "");
  EXPECT_NE(wrong("goodput >= x * baseline"), "");
}

TEST(Expectation, AStretchOfTheRunStandsAlone) {
  const Report r = some();
  EXPECT_TRUE(holds("goodput until 5s == 0", r));
  EXPECT_TRUE(holds("goodput after 5s == 10", r));
  EXPECT_TRUE(holds("throughput after 2s until 4s == 10", r));
  EXPECT_TRUE(holds("ttft.max until 5s <= 100ms", r));
  EXPECT_TRUE(holds("ttft.mean after 5s >= 500ms", r));
  EXPECT_NE(wrong("ttft.p99 after 5s < 1s").find("whole run"), std::string::npos);
  EXPECT_NE(wrong("goodput after 5s until 5s > 1").find("exchange"), std::string::npos);
  EXPECT_NE(wrong("goodput after tea > 1"), "");
}

TEST(Expectation, WhatWasNotMeasuredDoesNotHold) {
  const Report nothing;
  for (const char* line : {"ttft.p99 < 2s", "completed >= 0%", "ttft.mean after 1s < 9s",
                           "e2e.max <= 1000s", "cache_hit >= 0"}) {
    EXPECT_FALSE(holds(line, nothing)) << line;
  }
  EXPECT_TRUE(holds("lost_tokens == 0", nothing));
}

TEST(Expectation, AWrongLineSaysWhatWouldBeRight) {
  EXPECT_EQ(wrong("ttft.p98 < 2s"), "`ttft.p98` is no metric; did you mean `ttft.p90`?");
  EXPECT_NE(wrong("goodputt > 1").find("did you mean `goodput`"), std::string::npos);
  EXPECT_NE(wrong("goodput => 1").find("`>=`"), std::string::npos);
  EXPECT_NE(wrong("goodput").find("no relation"), std::string::npos);
  EXPECT_NE(wrong("goodput >").find("no value"), std::string::npos);
  EXPECT_NE(wrong("goodput > 1 2").find("`2`"), std::string::npos);
  EXPECT_NE(wrong(""), "");
  EXPECT_NE(wrong("<<<"), "");
}

TEST(Expectation, TheSentenceSaysWhatWasMeasured) {
  const Report r = some();
  EXPECT_EQ(judge(*parse_expectation("goodput > 9"), r, nullptr).sentence,
            "goodput > 9: it is 5/s");
  EXPECT_EQ(judge(*parse_expectation("completed > 99%"), r, nullptr).sentence,
            "completed > 99%: it is 98 %");
  EXPECT_EQ(judge(*parse_expectation("goodput > 2*baseline"), r, &r).sentence,
            "goodput > 2*baseline: it is 5/s, without faults 5/s");
  EXPECT_EQ(judge(*parse_expectation("e2e.p50 > 1s"), r, nullptr).sentence,
            "e2e.p50 > 1s: it is nothing");
}

TEST(Metric, FiguresAreShort) {
  EXPECT_EQ(print(1.2345, Unit::Seconds), "1.23 s");
  EXPECT_EQ(print(0.0123, Unit::Seconds), "12.3 ms");
  EXPECT_EQ(print(0, Unit::Seconds), "0 s");
  EXPECT_EQ(print(0.9731, Unit::Share), "97.3 %");
  EXPECT_EQ(print(1234567, Unit::Count), "1234567");
  EXPECT_EQ(print(0.25, Unit::PerSecond), "0.250/s");
}

}  // namespace
}  // namespace signalbox::sim
