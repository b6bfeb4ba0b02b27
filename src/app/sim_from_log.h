// SPDX-License-Identifier: Apache-2.0
// `signalbox sim from-log`: last night's traffic, from an event log, under other rules.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "sim/compare.h"
#include "sim/recorded.h"

namespace CLI {
class App;
}

namespace signalbox::app {

struct FromLogOptions {
  std::vector<std::string> logs;        // of one run, oldest first
  std::string keep;                     // folder for scenario and trace; empty: they are not kept
  std::string policies = "signalbox";   // all, or names with commas between
  std::vector<std::string> sets;        // what is tried besides
  std::uint64_t seed = 1;               // the first
  std::uint64_t seeds = 5;
  unsigned jobs = 0;                    // runs at once; 0: one per core
  std::string output = "table";         // or json
};

struct Counterfactual {
  std::string log;
  sim::RecordedFigures recorded;
  std::vector<std::string> notes;
  std::vector<sim::Row> rows;           // by what was tried, then by seed; the first: as it was
  std::vector<std::string> violations;
};

CLI::App* add_from_log(CLI::App& sim, FromLogOptions& options);

// Reads, writes what is to be kept, and runs everything. An error is about options or files.
Result<Counterfactual> counterfactual(const FromLogOptions& options);

std::string counterfactual_table(const Counterfactual& result);
std::string counterfactual_json(const Counterfactual& result);

// 0; 1: an invariant did not hold; 2: cannot be run.
int sim_from_log(const FromLogOptions& options);

}  // namespace signalbox::app
