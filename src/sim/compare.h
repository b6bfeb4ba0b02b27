// SPDX-License-Identifier: Apache-2.0
// The same traffic on the same fleet under several policies, pair by pair.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "sim/report.h"
#include "sim/scenario.h"

namespace signalbox::sim {

// What one run of one policy showed its users, and what it cost. Of tasks that came after the
// warm-up, as their users saw them: from their first request on, whatever was tried again.
struct Row {
  std::string policy;
  double load = 0;         // share of capacity
  std::uint64_t seed = 0;
  double tasks = 0;
  double e2e_mean_s = 0;
  double e2e_p99_s = 0;
  double ttft_mean_s = 0;
  double ttft_p99_s = 0;
  double tpot_mean_s = 0;  // per token after the first
  double goodput = 0;      // share of tasks within both objectives, 0..1
  double cache_hit = 0;    // share of prompt tokens, 0..1
  double preemptions = 0;
  double cost_usd = 0;     // of the time that engines were at work
};

// Calls `v(value, name)` for every number of a row, in the order of tables. R: Row or const Row.
template <typename Visitor, typename R>
void numbers(Visitor&& v, R& r) {
  v(r.load, "load");
  v(r.tasks, "tasks");
  v(r.e2e_mean_s, "e2e_mean_s");
  v(r.e2e_p99_s, "e2e_p99_s");
  v(r.ttft_mean_s, "ttft_mean_s");
  v(r.ttft_p99_s, "ttft_p99_s");
  v(r.tpot_mean_s, "tpot_mean_s");
  v(r.goodput, "goodput");
  v(r.cache_hit, "cache_hit");
  v(r.preemptions, "preemptions");
  v(r.cost_usd, "cost_usd");
}

Row row(const Scenario& scenario, double load, const Report& report);

// Policies by name: `all`, or a list with commas; `signalbox` is ours. An unknown name is an error
// that lists those there are.
Result<std::vector<std::string>> policies_of(std::string_view names);

// The scenario with its trace brought to `load` times the fleet's capacity, for `warm_up` and
// `measured` on end. An error says what of the trace does not allow it.
Result<Scenario> at_load(Scenario scenario, double load, Duration warm_up, Duration measured);

// One policy over several seeds.
struct Summary {
  Row mean;
  // Of log(its mean E2E / the reference's), paired by seed: the mean, and half the width of its
  // 95 % interval by Student's t; 0 with less than two pairs.
  double change = 0;
  double interval = 0;
};

// By policy, in the order of first appearance. Seeds that the reference did not run are no pairs.
std::vector<Summary> summarise(const std::vector<Row>& rows,
                               std::string_view reference = "signalbox");

}  // namespace signalbox::sim
