// SPDX-License-Identifier: Apache-2.0
// Goal: pages that Prometheus takes, figures that are right from many threads, and no more series
// than the cap whatever label values arrive. Method: exact pages, threads, invented names.
#include "io/telemetry/registry.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "io/telemetry/process_metrics.h"

namespace signalbox::telemetry {
namespace {

std::string page(const Registry& registry) {
  std::string out;
  registry.write(out);
  return out;
}

TEST(Registry, WritesFamiliesInOrderWithLabels) {
  Registry registry;
  registry.gauge("signalbox_up", "Always 1.").set(1);
  auto& requests = registry.counters(
      {"signalbox_requests_total", "Requests by outcome.", {"model", "outcome"}});
  requests.with({"b", "completed"}).add(2);
  requests.with({"a", "completed"}).add();
  EXPECT_EQ(page(registry),
            "# HELP signalbox_requests_total Requests by outcome.\n"
            "# TYPE signalbox_requests_total counter\n"
            "signalbox_requests_total{model=\"a\",outcome=\"completed\"} 1\n"
            "signalbox_requests_total{model=\"b\",outcome=\"completed\"} 2\n"
            "# HELP signalbox_up Always 1.\n# TYPE signalbox_up gauge\nsignalbox_up 1\n");
}

TEST(Registry, WritesHistogramsCumulatively) {
  Registry registry;
  const double bounds[] = {0.1, 1};
  auto& waits = registry.histograms({"signalbox_wait_seconds", "Waits.", {"pool"}}, bounds);
  for (double v : {0.1, 0.5, 2.0, std::nan("")}) waits.with({"p"}).observe(v);
  EXPECT_EQ(page(registry),
            "# HELP signalbox_wait_seconds Waits.\n# TYPE signalbox_wait_seconds histogram\n"
            "signalbox_wait_seconds_bucket{pool=\"p\",le=\"0.1\"} 1\n"
            "signalbox_wait_seconds_bucket{pool=\"p\",le=\"1\"} 2\n"
            "signalbox_wait_seconds_bucket{pool=\"p\",le=\"+Inf\"} 3\n"
            "signalbox_wait_seconds_sum{pool=\"p\"} 2.6\n"
            "signalbox_wait_seconds_count{pool=\"p\"} 3\n");
}

TEST(Registry, TenThousandInventedNamesMakeNoMoreSeriesThanTheCap) {
  Registry registry;
  auto& family = registry.counters({"signalbox_x_total", "X.", {"model"}, 20});
  for (int i = 0; i < 10'000; ++i) family.with({"model-" + std::to_string(i)}).add();
  EXPECT_EQ(family.series(), 21u);
  EXPECT_EQ(family.with({"other"}).value(), 10'000u - 20);
  EXPECT_EQ(family.with({"model-3"}).value(), 1u);
}

TEST(Registry, ALabelWithTooManyValuesLeavesTheOthersAlone) {
  Registry registry;
  auto& family = registry.counters({"signalbox_x_total", "X.", {"model", "outcome"}});
  registry.set_label_values_max(2);
  for (const std::string model : {"a", "b", "c", "d"}) {
    family.with({model, "completed"}).add();
    family.with({model, "truncated"}).add();
  }
  EXPECT_EQ(family.series(), 6u);
  EXPECT_EQ(family.with({"b", "truncated"}).value(), 1u);
  EXPECT_EQ(family.with({"other", "truncated"}).value(), 2u);
  registry.set_label_values_max(3);
  family.with({"e", "completed"}).add();
  EXPECT_EQ(family.with({"e", "completed"}).value(), 1u);
}

TEST(Registry, EscapesLabelValuesAndHidesBrokenUtf8) {
  Registry registry;
  registry.gauges({"signalbox_g", "G\\\n.", {"v"}}).with({"a\"b\\c\nd\xff" "e\xc3\xa9"}).set(1.5);
  EXPECT_EQ(page(registry),
            "# HELP signalbox_g G\\\\\\n.\n# TYPE signalbox_g gauge\n"
            "signalbox_g{v=\"a\\\"b\\\\c\\nd?e\xc3\xa9\"} 1.5\n");
}

TEST(Registry, SpellsSpecialNumbers) {
  std::string out;
  TextWriter writer(out);
  writer.family("f", MetricType::Gauge, "h");
  out.clear();
  constexpr double kInf = std::numeric_limits<double>::infinity();
  for (double v : {kInf, -kInf, std::nan(""), 1e6, 0.1, -3.0, 1e300}) writer.sample({}, v);
  EXPECT_EQ(out, "f +Inf\nf -Inf\nf NaN\nf 1000000\nf 0.1\nf -3\nf 1e+300\n");
}

TEST(Registry, ScalesCountedNanosecondsToSeconds) {
  Registry registry;
  registry.counter("signalbox_busy_seconds_total", "Busy.", 1e-9).add(1'500'000'000);
  EXPECT_NE(page(registry).find("\nsignalbox_busy_seconds_total 1.5\n"), std::string::npos);
}

TEST(Registry, CountsExactlyFromManyThreads) {
  Registry registry;
  auto& counters = registry.counters({"signalbox_n_total", "N.", {"t"}});
  auto& histogram = registry.histograms({"signalbox_h_seconds", "H.", {}}, latency_bounds());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      Counter& own = counters.with({"shared"});
      Histogram& times = histogram.with({});
      for (int i = 0; i < 10'000; ++i) {
        own.add();
        times.observe(1);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(counters.with({"shared"}).value(), 40'000u);
  EXPECT_EQ(histogram.with({}).sum(), 40'000.0);
}

TEST(Registry, RunsCollectorsAtEachScrape) {
  Registry registry;
  int scrapes = 0;
  registry.collector([&](TextWriter& w) {
    w.family("signalbox_scrapes", MetricType::Gauge, "S.");
    w.sample({{"a", "b"}}, ++scrapes);
  });
  page(registry);
  EXPECT_NE(page(registry).find("signalbox_scrapes{a=\"b\"} 2\n"), std::string::npos);
}

TEST(RegistryDeathTest, RefusesNamesOutsideTheConventions) {
  Registry registry;
  EXPECT_DEATH(registry.gauge("queue", "Q."), "CHECK|check|signalbox_");
  EXPECT_DEATH(registry.gauge("signalbox_wait_ms", "W."), "odd_unit");
  EXPECT_DEATH(registry.counter("signalbox_requests", "R."), "_total");
  EXPECT_DEATH(registry.gauge("signalbox_size_total", "S."), "_total");
}

TEST(ProcessMetrics, TellMemoryAndStartOfThisProcess) {
  Registry registry;
  add_process_metrics(registry);
  std::string text = page(registry);
  auto value = [&](const std::string& name) {
    std::size_t at = text.find("\n" + name + " ");
    return at == std::string::npos ? -1 : std::strtod(text.c_str() + at + name.size() + 2, nullptr);
  };
  EXPECT_GT(value("process_resident_memory_bytes"), 1e6);
  EXPECT_GT(value("process_start_time_seconds"), 1.6e9);
  EXPECT_GE(value("process_open_fds"), 3);
  EXPECT_GE(value("process_threads"), 1);
}

}  // namespace
}  // namespace signalbox::telemetry
