// SPDX-License-Identifier: Apache-2.0
// Goal: what runs gave is shown in full, and a page holds whatever names a scenario has. Method:
// results made by hand and small runs, written in every form.
#include "app/sim_result.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "app/chart.h"
#include "sim/run.h"

namespace signalbox::app {
namespace {

using nlohmann::json;

SimResult some(std::size_t seeds) {
  SimResult result;
  result.file = "some.yaml";
  result.form.shows = "Some <b>runs</b> & \"more\".";
  result.form.expect.push_back(*sim::parse_expectation("completed >= 99%"));
  result.form.expect.push_back(*sim::parse_expectation("ttft.p50 < 1ms"));
  for (std::size_t i = 0; i < seeds; ++i) {
    sim::Scenario s;
    s.seed = 10 + i;
    s.load.requests = 100;
    s.load.leavers = 0;
    SimRun run;
    run.seed = s.seed;
    run.report = sim::run(s);
    for (const sim::Expectation& e : result.form.expect) {
      run.verdicts.push_back(sim::judge(e, run.report, nullptr));
    }
    result.runs.push_back(std::move(run));
  }
  return result;
}

TEST(SimResult, OneSeedIsShownByFigures) {
  const SimResult result = some(1);
  EXPECT_FALSE(result.passed());
  const std::string table = sim_table(result);
  EXPECT_NE(table.find("ok    completed >= 99%: it is 100 %"), std::string::npos) << table;
  EXPECT_NE(table.find("FAIL  ttft.p50 < 1ms: it is "), std::string::npos) << table;
  const auto failed = failures(result);
  ASSERT_EQ(failed.size(), 1u);
  EXPECT_EQ(failed[0].substr(0, 22), "seed 10: ttft.p50 < 1m");
}

TEST(SimResult, SeveralSeedsAreShownByMeanAndSpread) {
  const SimResult result = some(3);
  const std::string table = sim_table(result);
  EXPECT_NE(table.find("completed >= 99%: with 3 of 3 seeds"), std::string::npos) << table;
  EXPECT_NE(table.find("FAIL  ttft.p50 < 1ms: with 0 of 3 seeds"), std::string::npos) << table;
  EXPECT_NE(table.find("FAIL  seed 12: "), std::string::npos) << table;
  const sim::Metric& elapsed = **sim::find_metric("elapsed");
  double sum = 0;
  double squares = 0;
  for (const SimRun& run : result.runs) {
    const double value = to_seconds(run.report.elapsed);
    sum += value;
    squares += value * value;
  }
  const Spread s = spread_of(result, elapsed);
  EXPECT_EQ(s.count, 3u);
  EXPECT_NEAR(s.mean, sum / 3, 1e-9);
  EXPECT_NEAR(s.deviation, std::sqrt((squares - sum * sum / 3) / 2), 1e-6);
  EXPECT_LT(s.low, s.mean);
  EXPECT_GT(s.high, s.mean);
}

TEST(SimResult, TheJsonHoldsEveryMetricAndTheSeries) {
  const json all = json::parse(sim_json({some(2)}));
  ASSERT_EQ(all.size(), 1u);
  const json& one = all[0];
  EXPECT_EQ(one["scenario"], "some.yaml");
  EXPECT_EQ(one["passed"], false);
  ASSERT_EQ(one["runs"].size(), 2u);
  for (const sim::Metric& metric : sim::metrics()) {
    EXPECT_TRUE(one["runs"][0]["metrics"].contains(metric.name)) << metric.name;
  }
  EXPECT_EQ(one["runs"][0]["metrics"]["requests"], one["runs"][0]["metrics"]["outcome.completed"]);
  EXPECT_EQ(one["runs"][1]["expect"][0]["holds"], true);
  std::int64_t answered = 0;
  for (const json& bucket : one["runs"][0]["series"]["buckets"]) {
    answered += bucket["answered"].get<std::int64_t>();
  }
  EXPECT_EQ(answered, one["runs"][0]["metrics"]["requests"].get<std::int64_t>());
  EXPECT_TRUE(one["summary"].contains("ttft.p99"));
}

TEST(SimResult, ThePageHoldsAnyNameAndNothingFromElsewhere) {
  SimResult result = some(1);
  result.file = "<script>alert('x')</script>&.yaml";
  const std::string page = sim_page({result});
  EXPECT_EQ(page.find("<script>alert"), std::string::npos);
  EXPECT_EQ(page.find("<b>runs"), std::string::npos);
  EXPECT_NE(page.find("&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;.yaml"),
            std::string::npos);
  for (const char* elsewhere : {"http://", "https://", "src=", "@import", "url("}) {
    EXPECT_EQ(page.find(elsewhere), std::string::npos) << elsewhere;
  }
  std::size_t charts = 0;
  for (std::size_t at = 0; (at = page.find("<svg ", at)) != page.npos; ++at) ++charts;
  EXPECT_EQ(charts, 9u);
  for (const char* no_number : {">nan", "Mnan", "Lnan", " nan", ",nan", "inf"}) {
    EXPECT_EQ(page.find(no_number), std::string::npos) << no_number;
  }
}

TEST(SimResult, ARunWithNothingInItHasAPage) {
  SimResult result;
  result.runs.emplace_back();
  EXPECT_NE(sim_page({result}).find("</html>"), std::string::npos);
  EXPECT_NE(sim_table(result).find("LATENCY"), std::string::npos);
}

TEST(Chart, TicksAreRoundAndCoverTheAxis) {
  EXPECT_EQ(ticks(0, 10, 5, Scale::Linear), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(ticks(0, 0.5, 5, Scale::Linear).size(), 6u);
  EXPECT_EQ(ticks(3, 3.9, 5, Scale::Linear).size(), 5u);
  const auto log = ticks(0.02, 3, 5, Scale::Log);
  ASSERT_EQ(log.size(), 7u);
  EXPECT_DOUBLE_EQ(log.front(), 0.02);
  EXPECT_DOUBLE_EQ(log.back(), 2);
  EXPECT_EQ(ticks(1e-6, 1e3, 5, Scale::Log).size(), 10u);
  // Less than a decade has round numbers, too.
  EXPECT_GE(ticks(0.0051, 0.0098, 5, Scale::Log).size(), 3u);
}

TEST(Chart, AGapInterruptsTheLine) {
  Chart chart;
  Line line;
  line.name = "a";
  line.points = {{0, 1}, {1, std::numeric_limits<double>::quiet_NaN()}, {2, 1}, {3, 1}};
  chart.lines.push_back(line);
  const std::string picture = svg(chart);
  const std::size_t at = picture.find(" d=\"M") + 4;
  const std::string path = picture.substr(at, picture.find('"', at) - at);
  EXPECT_EQ(std::count(path.begin(), path.end(), 'M'), 2) << path;
  EXPECT_EQ(std::count(path.begin(), path.end(), 'L'), 1) << path;
}

}  // namespace
}  // namespace signalbox::app
