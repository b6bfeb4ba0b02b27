// SPDX-License-Identifier: Apache-2.0
// Goal: wanted samples are read exactly, broken lines never, nothing outside the page ever. Method:
// hand-made lines, the recorded page of vLLM against a naive reader, and mutations of it.
#include "io/engine/metrics_text.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <memory>
#include <string>

#include "io/engine/recorded_for_test.inc"

namespace signalbox::engine {
namespace {

const WantedNames& wanted() {
  static const WantedNames names({"some_metric_total", "other:metric", "vllm:num_preemptions_total",
                                  "vllm:iteration_tokens_total_sum"});
  return names;
}

struct Read {
  std::vector<Sample> samples;
  int broken = 0;
};

Read read(std::string_view page) {
  Read out;
  MetricsScanner scanner(page, wanted());
  Sample sample;
  while (scanner.next(sample)) out.samples.push_back(sample);
  out.broken = scanner.broken();
  return out;
}

double value_of(const std::string& line) {
  Read got = read(line + "\n");
  EXPECT_EQ(got.samples.size(), 1u) << line;
  return got.samples.empty() ? -12345 : got.samples[0].value;
}

TEST(MetricsText, ReadsWantedNamesAndSkipsOthers) {
  std::string page =
      "# HELP some_metric_total help\n# TYPE some_metric_total counter\n"
      "some_metric_total 3\nsome_metric_total_created 9\nsome_metric 4\n\n"
      "other:metric{a=\"b\"} 5\nshort 1\n";
  Read got = read(page);
  ASSERT_EQ(got.samples.size(), 2u);
  EXPECT_EQ(got.samples[0].name, 0);
  EXPECT_EQ(got.samples[0].value, 3);
  EXPECT_EQ(got.samples[1].name, 1);
  EXPECT_EQ(got.samples[1].labels, "a=\"b\"");
  EXPECT_EQ(got.broken, 0);
}

TEST(MetricsText, ReadsEveryFormOfNumber) {
  EXPECT_EQ(value_of("some_metric_total 12"), 12);
  EXPECT_EQ(value_of("some_metric_total 0.0"), 0);
  EXPECT_DOUBLE_EQ(value_of("some_metric_total 6.1e-05"), 6.1e-05);
  EXPECT_DOUBLE_EQ(value_of("some_metric_total 1.79597399657e+09"), 1795973996.57);
  EXPECT_EQ(value_of("some_metric_total +7"), 7);
  EXPECT_EQ(value_of("some_metric_total -7"), -7);
  EXPECT_EQ(value_of("some_metric_total\t 7 1395066363000"), 7);
  EXPECT_EQ(value_of("some_metric_total +Inf"), std::numeric_limits<double>::infinity());
  EXPECT_EQ(value_of("some_metric_total -Inf"), -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(value_of("some_metric_total NaN")));
}

TEST(MetricsText, SkipsBrokenLinesAndCountsThem) {
  for (const char* line :
       {"some_metric_total", "some_metric_total ", "some_metric_total x", "some_metric_total 1x",
        "some_metric_total 1 2x", "some_metric_total 1 2 3", "some_metric_total +-1",
        "some_metric_total{a=\"b\" 1", "some_metric_total{a=\"b} 1", "some_metric_total{a=b} 1",
        "some_metric_total{=\"b\"} 1", "some_metric_total{1a=\"b\"} 1", "some_metric_total{a} 1",
        "some_metric_total{a=\"b\"c=\"d\"} 1", "some_metric_total{a=\"\\x\"} 1",
        "some_metric_total{", "some_metric_total{a=\"\\", "some_metric_total{,} 1"}) {
    Read got = read(std::string(line) + "\n");
    EXPECT_TRUE(got.samples.empty()) << line;
    EXPECT_EQ(got.broken, 1) << line;
  }
}

TEST(MetricsText, DoesNotTrustALineThatMayHaveBeenCut) {
  Read got = read("some_metric_total 12\nother:metric 12");
  EXPECT_EQ(got.samples.size(), 1u);
  EXPECT_EQ(got.broken, 1);
}

TEST(MetricsText, FindsLabelsInAnyOrderBehindEscapes) {
  Read got = read("other:metric{ x=\"},\\\"{\" , rank=\"12\",y=\"\\\\\",} 1\n");
  ASSERT_EQ(got.samples.size(), 1u);
  EXPECT_EQ(label(got.samples[0].labels, "rank"), "12");
  EXPECT_EQ(label(got.samples[0].labels, "x"), "},\\\"{");
  EXPECT_EQ(label(got.samples[0].labels, "y"), "\\\\");
  EXPECT_EQ(label(got.samples[0].labels, "ran"), std::nullopt);
  EXPECT_EQ(label("", "rank"), std::nullopt);
  EXPECT_EQ(whole_number("12"), 12);
  EXPECT_EQ(whole_number("None"), std::nullopt);
  EXPECT_EQ(whole_number("12.0"), std::nullopt);
  EXPECT_EQ(whole_number(""), std::nullopt);
}

TEST(MetricsText, AgreesWithANaiveReaderOnARealPage) {
  std::string page = recorded_file("vllm-0.32-metrics.txt");
  ASSERT_GT(page.size(), 60'000u);
  std::vector<std::string> names;
  std::vector<std::pair<std::string, double>> naive;
  for (std::size_t at = 0; at < page.size();) {
    std::size_t end = page.find('\n', at);
    std::string line = page.substr(at, end - at);
    at = end + 1;
    if (line[0] == '#') continue;
    std::string name = line.substr(0, line.find_first_of("{ "));
    if (name.size() < 8) continue;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    naive.emplace_back(name, std::strtod(line.c_str() + line.rfind(' '), nullptr));
  }
  ASSERT_GT(names.size(), 100u);
  // 64 names at a time, each of which has to be found exactly as often and with the same values.
  std::size_t seen = 0;
  for (std::size_t from = 0; from < names.size(); from += 64) {
    std::vector<std::string_view> some(names.begin() + static_cast<std::ptrdiff_t>(from),
                                       names.begin() + static_cast<std::ptrdiff_t>(
                                                           std::min(from + 64, names.size())));
    WantedNames set(some);
    std::vector<std::pair<std::string, double>> expected;
    for (auto& [name, value] : naive) {
      if (std::find(some.begin(), some.end(), name) == some.end()) continue;
      expected.emplace_back(name, value);
    }
    std::vector<std::pair<std::string, double>> got;
    MetricsScanner scanner(page, set);
    Sample sample;
    while (scanner.next(sample)) {
      got.emplace_back(some[static_cast<std::size_t>(sample.name)], sample.value);
    }
    EXPECT_EQ(scanner.broken(), 0);
    EXPECT_EQ(got, expected);
    seen += got.size();
  }
  EXPECT_EQ(seen, naive.size());
}

RC_GTEST_PROP(MetricsText, StaysInsideAnyPage, (std::vector<std::pair<int, char>> edits)) {
  static const std::string kPage =
      "vllm:num_preemptions_total{engine=\"0\",model_name=\"a\\\"b\"} 1.5e3 17\n"
      "some_metric_total 1\nother:metric{} NaN\n# x\nvllm:iteration_tokens_total_sum{a=\"\"} 2\n";
  std::string page = kPage;
  for (auto [at, c] : edits) page[static_cast<unsigned>(at) % page.size()] = c;
  // An exact heap copy, so that a read past the end is seen by the sanitizer.
  auto copy = std::make_unique<char[]>(page.size());
  page.copy(copy.get(), page.size());
  Read got = read(std::string_view(copy.get(), page.size()));
  RC_ASSERT(got.samples.size() + static_cast<std::size_t>(got.broken) <= page.size());
}

}  // namespace
}  // namespace signalbox::engine
