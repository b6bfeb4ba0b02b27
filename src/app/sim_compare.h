// SPDX-License-Identifier: Apache-2.0
// `signalbox sim compare`: our policy and the peers' side by side on recorded traffic.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "sim/compare.h"

namespace CLI {
class App;
}

namespace signalbox::app {

struct CompareOptions {
  std::string trace;                 // file, plain or gzip
  std::string format = "mooncake";   // a name of sim::TraceFormat
  std::string sessions;              // agentic: the table of sessions
  std::string lengths;               // servegen: the table of lengths
  std::string clients;               // servegen: the model whose clients are drawn
  std::string fleet;                 // scenario file; empty: eight engines of a kind
  std::vector<std::string> sets;
  std::string policies = "all";
  double load = 0.8;                 // share of the fleet's capacity
  std::uint64_t seed = 1;            // the first
  std::uint64_t seeds = 1;
  double warm_up_s = 300;
  double measured_s = 1200;
  unsigned jobs = 0;                 // runs at once; 0: one per core
  std::string output = "table";      // or json
};

struct Comparison {
  std::string trace;
  double load = 0;
  double capacity = 0;               // requests per second that are 100 %
  double cached_share = 0;           // of prompt tokens, that this assumes
  std::vector<sim::Row> rows;        // by policy as asked for, then by seed
  std::vector<std::string> violations;
};

CLI::App* add_compare(CLI::App& sim, CompareOptions& options);

// Runs everything. An error is about the options or the files that they name.
Result<Comparison> compare(const CompareOptions& options);

// A run that is compared with others.
struct Contender {
  std::string name;
  sim::Scenario scenario;
};

// Runs them on threads, `jobs` at once (0: one per core): each is on its own. A row each, in order,
// under the contender's name; what broke goes to `violations`.
std::vector<sim::Row> run_all(const std::vector<Contender>& contenders, double load, unsigned jobs,
                              std::vector<std::string>& violations);
// Prints what came of it, and says what broke: the exit code.
int tell(const std::string& text, const std::vector<std::string>& violations);

// How its mean E2E differs from the reference's, with the interval: `+12.3 % ± 1.0`.
std::string change_text(const sim::Summary& summary);

std::string compare_table(const Comparison& comparison);
std::string compare_json(const Comparison& comparison);

// 0; 1: an invariant did not hold; 2: cannot be run.
int sim_compare(const CompareOptions& options);

}  // namespace signalbox::app
