// SPDX-License-Identifier: Apache-2.0
// What came of a scenario's runs, and the ways to show it: a table, JSON, a page.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/expect.h"
#include "sim/report.h"
#include "sim/scenario_form.h"

namespace signalbox::app {

struct SimRun {
  std::uint64_t seed = 0;
  std::vector<sim::Fault> faults;        // written and drawn
  sim::Report report;
  std::optional<sim::Report> baseline;   // the same without faults, when some line asks for it
  std::vector<sim::Verdict> verdicts;    // one for each line of `expect`

  bool passed() const;
};

struct SimResult {
  std::string file;
  sim::ScenarioForm form;
  std::vector<SimRun> runs;              // one a seed, at least one

  bool passed() const;
};

// Over the seeds of a result; values that were not measured are left out.
struct Spread {
  std::size_t count = 0;
  double mean = 0;
  double deviation = 0;                  // of the sample; 0 with one value
  double low = 0;
  double high = 0;
};
Spread spread_of(const SimResult& result, const sim::Metric& metric);

// What does not hold, a line each: expectations, and invariants of the core.
std::vector<std::string> failures(const SimResult& result);

std::string sim_table(const SimResult& result);
std::string sim_json(const std::vector<SimResult>& results);
// One page without anything from elsewhere.
std::string sim_page(const std::vector<SimResult>& results);

}  // namespace signalbox::app
