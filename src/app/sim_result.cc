// SPDX-License-Identifier: Apache-2.0
// Sums up runs; writes them as tables and as JSON.
#include "app/sim_result.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "app/table.h"

namespace signalbox::app {
namespace {

using Json = nlohmann::ordered_json;
using sim::Metric;

constexpr const char* kStatistics[] = {"mean", "p50", "p90", "p95", "p99", "max"};
constexpr const char* kDistributions[] = {"ttft", "tpot", "e2e", "task.ttft", "task.e2e"};

bool is_of_a_distribution(const Metric& metric) {
  return std::any_of(std::begin(kDistributions), std::end(kDistributions), [&](const char* name) {
    return metric.name.starts_with(std::string(name) + ".");
  });
}

std::string value_text(const Metric& metric, const sim::Report& report) {
  const auto value = metric.of(report);
  return value ? sim::print(*value, metric.unit) : "-";
}

std::string latency_table(const sim::Report& report) {
  Table table({"LATENCY", "MEAN", "P50", "P90", "P95", "P99", "MAX"});
  for (const char* distribution : kDistributions) {
    std::vector<std::string> row{distribution};
    for (const char* statistic : kStatistics) {
      const auto metric = sim::find_metric(std::string(distribution) + "." + statistic);
      row.push_back(value_text(**metric, report));
    }
    table.row(std::move(row));
  }
  return table.text();
}

// Everything else that says something.
std::string figures_table(const sim::Report& report) {
  Table table({"METRIC", "", "MEANING"});
  for (const Metric& metric : sim::metrics()) {
    const auto value = metric.of(report);
    if (is_of_a_distribution(metric) || !value || *value == 0) continue;
    table.row({metric.name, sim::print(*value, metric.unit), metric.meaning});
  }
  return table.text();
}

std::string one_run(const SimRun& run) {
  std::string out = latency_table(run.report) + "\n" + figures_table(run.report);
  if (!run.verdicts.empty()) out += "\n";
  for (const sim::Verdict& verdict : run.verdicts) {
    out += (verdict.holds ? "ok    " : "FAIL  ") + verdict.sentence + "\n";
  }
  for (const std::string& violation : run.report.violations) out += "FAIL  " + violation + "\n";
  if (!run.baseline) return out;
  for (const std::string& violation : run.baseline->violations) {
    out += "FAIL  without faults, " + violation + "\n";
  }
  return out;
}

std::string many_runs(const SimResult& result) {
  Table table({"METRIC", "MEAN", "SD", "LEAST", "MOST"});
  for (const Metric& metric : sim::metrics()) {
    const Spread s = spread_of(result, metric);
    if (s.count == 0 || (s.low == 0 && s.high == 0)) continue;
    const auto print = [&](double value) { return sim::print(value, metric.unit); };
    table.row({metric.name, print(s.mean), print(s.deviation), print(s.low), print(s.high)});
  }
  std::string out = table.text();
  if (!result.form.expect.empty()) out += "\n";
  for (std::size_t i = 0; i < result.form.expect.size(); ++i) {
    std::size_t held = 0;
    for (const SimRun& run : result.runs) held += run.verdicts[i].holds ? 1 : 0;
    out += (held == result.runs.size() ? "ok    " : "FAIL  ") + result.form.expect[i].text +
           fmt::format(": with {} of {} seeds\n", held, result.runs.size());
  }
  for (const std::string& failure : failures(result)) out += "FAIL  " + failure + "\n";
  return out;
}

// --- JSON ----------------------------------------------------------------------------------------

Json number(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

Json metrics_json(const sim::Report& report) {
  Json out = Json::object();
  for (const Metric& metric : sim::metrics()) out[metric.name] = number(metric.of(report));
  return out;
}

Json series_json(const sim::Series& series) {
  Json out = {{"width_s", to_seconds(series.width())}, {"buckets", Json::array()}};
  for (const sim::Bucket& b : series.buckets()) {
    Json bucket = {{"arrived", b.arrived},
                   {"answered", b.answered},
                   {"good", b.good},
                   {"ttft_mean_s", nullptr},
                   {"ttft_max_s", b.ttft_max}};
    if (b.answered > 0) bucket["ttft_mean_s"] = b.ttft_sum / static_cast<double>(b.answered);
    for (const auto& [name, figure] :
         {std::pair("queued", &sim::Moment::queued), std::pair("waiting", &sim::Moment::waiting),
          std::pair("running", &sim::Moment::running), std::pair("kv", &sim::Moment::kv),
          std::pair("instances", &sim::Moment::instances)}) {
      bucket[name] = b.moments > 0 ? Json(b.mean(figure)) : Json(nullptr);
    }
    out["buckets"].push_back(std::move(bucket));
  }
  return out;
}

Json run_json(const SimResult& result, const SimRun& run) {
  Json out = {{"seed", run.seed},
              {"passed", run.passed()},
              {"digest", fmt::format("{:016x}", run.report.digest)},
              {"metrics", metrics_json(run.report)}};
  if (run.baseline) out["baseline"] = metrics_json(*run.baseline);
  out["expect"] = Json::array();
  for (std::size_t i = 0; i < run.verdicts.size(); ++i) {
    const sim::Verdict& verdict = run.verdicts[i];
    out["expect"].push_back({{"line", result.form.expect[i].text},
                             {"holds", verdict.holds},
                             {"value", number(verdict.value)},
                             {"bound", number(verdict.bound)}});
  }
  out["violations"] = run.report.violations;
  out["series"] = series_json(run.report.series);
  return out;
}

Json summary_json(const SimResult& result) {
  Json out = Json::object();
  for (const Metric& metric : sim::metrics()) {
    const Spread s = spread_of(result, metric);
    if (s.count == 0) continue;
    out[metric.name] = {{"seeds", s.count}, {"mean", s.mean}, {"sd", s.deviation},
                        {"least", s.low},   {"most", s.high}};
  }
  return out;
}

}  // namespace

bool SimRun::passed() const {
  return report.violations.empty() &&
         (!baseline || baseline->violations.empty()) &&
         std::all_of(verdicts.begin(), verdicts.end(),
                     [](const sim::Verdict& v) { return v.holds; });
}

bool SimResult::passed() const {
  return std::all_of(runs.begin(), runs.end(), [](const SimRun& run) { return run.passed(); });
}

Spread spread_of(const SimResult& result, const Metric& metric) {
  Spread s;
  double squares = 0;
  for (const SimRun& run : result.runs) {
    const auto value = metric.of(run.report);
    if (!value) continue;
    s.low = s.count == 0 ? *value : std::min(s.low, *value);
    s.high = s.count == 0 ? *value : std::max(s.high, *value);
    ++s.count;
    // Welford's: no difference of large sums.
    const double before = *value - s.mean;
    s.mean += before / static_cast<double>(s.count);
    squares += before * (*value - s.mean);
  }
  if (s.count > 1) s.deviation = std::sqrt(squares / static_cast<double>(s.count - 1));
  return s;
}

std::vector<std::string> failures(const SimResult& result) {
  std::vector<std::string> out;
  for (const SimRun& run : result.runs) {
    const std::string who = "seed " + std::to_string(run.seed) + ": ";
    for (const sim::Verdict& verdict : run.verdicts) {
      if (!verdict.holds) out.push_back(who + verdict.sentence);
    }
    for (const std::string& violation : run.report.violations) out.push_back(who + violation);
    if (!run.baseline) continue;
    for (const std::string& violation : run.baseline->violations) {
      out.push_back(who + "without faults, " + violation);
    }
  }
  return out;
}

std::string sim_table(const SimResult& result) {
  return result.runs.size() == 1 ? one_run(result.runs[0]) : many_runs(result);
}

std::string sim_json(const std::vector<SimResult>& results) {
  Json out = Json::array();
  for (const SimResult& result : results) {
    Json one = {{"scenario", result.file},
                {"shows", result.form.shows},
                {"policy", result.form.policy},
                {"passed", result.passed()},
                {"runs", Json::array()}};
    for (const SimRun& run : result.runs) one["runs"].push_back(run_json(result, run));
    if (result.runs.size() > 1) one["summary"] = summary_json(result);
    out.push_back(std::move(one));
  }
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace signalbox::app
