// SPDX-License-Identifier: Apache-2.0
// Brings a trace to a load, and runs to rows to summaries.
#include "sim/compare.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>

#include "base/check.h"
#include "sim/capacity.h"
#include "sim/peers/registry.h"
#include "sim/trace/operations.h"

namespace signalbox::sim {
namespace {

constexpr std::string_view kOurs = "signalbox";

// Of Student's t with `freedom` degrees: 97.5 % lie below.
double t_quantile(std::size_t freedom) {
  constexpr std::array<double, 10> kTable = {12.706, 4.303, 3.182, 2.776, 2.571,
                                             2.447,  2.365, 2.306, 2.262, 2.228};
  if (freedom <= kTable.size()) return kTable[freedom - 1];
  // Cornish-Fisher, within 0.1 % from here on (Abramowitz and Stegun 26.7.5).
  constexpr double z = 1.959964;
  const auto n = static_cast<double>(freedom);
  return z + (z * z * z + z) / (4 * n) +
         (5 * std::pow(z, 5) + 16 * z * z * z + 3 * z) / (96 * n * n);
}

void add(Row& sum, const Row& r) {
  std::array<double, 16> values{};
  std::size_t i = 0;
  numbers([&](const double& value, std::string_view) { values.at(i++) = value; }, r);
  i = 0;
  numbers([&](double& value, std::string_view) { value += values.at(i++); }, sum);
}

}  // namespace

Row row(const Scenario& scenario, double load, const Report& report) {
  Row r;
  r.policy = scenario.policy;
  r.load = load;
  r.seed = scenario.seed;
  r.tasks = static_cast<double>(report.tasks);
  r.e2e_mean_s = report.task_e2e.mean();
  r.e2e_p99_s = report.task_e2e.quantile(0.99);
  r.ttft_mean_s = report.task_ttft.mean();
  r.ttft_p99_s = report.task_ttft.quantile(0.99);
  r.tpot_mean_s = report.tpot.mean();
  r.goodput = report.tasks > 0 ? static_cast<double>(report.tasks_good) / r.tasks : 0;
  r.cache_hit = report.cache_hit();
  r.preemptions = static_cast<double>(report.engines.preemptions);
  r.cost_usd = report.engines.busy_usd;
  return r;
}

Result<std::vector<std::string>> policies_of(std::string_view names) {
  std::vector<std::string> found;
  if (names == "all") {
    found.emplace_back(kOurs);
    for (const peers::Peer& peer : peers::all()) found.emplace_back(peer.name);
    return found;
  }
  while (!names.empty()) {
    const std::string_view name = names.substr(0, names.find(','));
    names.remove_prefix(std::min(names.size(), name.size() + 1));
    if (name != kOurs) {
      TRY_ASSIGN(const peers::Peer peer, peers::find(name));
      static_cast<void>(peer);
    }
    found.emplace_back(name);
  }
  if (found.empty()) return invalid("no policy is named; write all, or names with commas between.");
  return found;
}

Result<Scenario> at_load(Scenario scenario, double load, Duration warm_up, Duration measured) {
  CHECK(load > 0 && scenario.load.trace != nullptr);
  const trace::Trace& recorded = *scenario.load.trace;
  if (recorded.calls.empty()) return invalid("the trace has no calls.");
  const Capacity can = capacity(scenario.groups, recorded);
  const double rate = load * can.requests_per_second;
  Load& l = scenario.load;
  l.warm_up = warm_up;
  l.lasts = warm_up + measured;
  l.requests = 1'000'000'000;
  if (trace::has_starts(recorded)) {
    TRY_ASSIGN(trace::Trace scaled, trace::scale_to_requests(recorded, rate));
    if (scaled.lasts < l.lasts) scaled = trace::splice(scaled, l.lasts);
    l.trace = std::make_shared<const trace::Trace>(std::move(scaled));
    return scenario;
  }
  l.sessions_at_once = std::max(1, static_cast<int>(std::lround(load * can.sessions_at_once)));
  return scenario;
}

std::vector<Summary> summarise(const std::vector<Row>& rows, std::string_view reference) {
  std::vector<Summary> summaries;
  std::map<std::uint64_t, double> known_by_seed;  // mean E2E of the reference
  for (const Row& r : rows) {
    if (r.policy == reference) known_by_seed[r.seed] = r.e2e_mean_s;
  }
  for (const Row& r : rows) {
    const bool known = std::ranges::any_of(
        summaries, [&](const Summary& s) { return s.mean.policy == r.policy; });
    if (known) continue;
    Summary s;
    std::vector<double> differences;
    double runs = 0;
    for (const Row& other : rows) {
      if (other.policy != r.policy) continue;
      add(s.mean, other);
      ++runs;
      const auto pair = known_by_seed.find(other.seed);
      if (pair == known_by_seed.end() || !(pair->second > 0) || !(other.e2e_mean_s > 0)) continue;
      differences.push_back(std::log(other.e2e_mean_s / pair->second));
    }
    numbers([&](double& value, std::string_view) { value /= runs; }, s.mean);
    s.mean.policy = r.policy;
    s.mean.seed = 0;
    const auto n = static_cast<double>(differences.size());
    for (const double d : differences) s.change += d / n;
    if (differences.size() >= 2) {
      double squares = 0;
      for (const double d : differences) squares += (d - s.change) * (d - s.change);
      s.interval = t_quantile(differences.size() - 1) * std::sqrt(squares / (n - 1) / n);
    }
    summaries.push_back(std::move(s));
  }
  return summaries;
}

}  // namespace signalbox::sim
