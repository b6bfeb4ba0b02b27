// SPDX-License-Identifier: Apache-2.0
// `signalbox sim`: runs of scenarios in the virtual world.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/sim_compare.h"
#include "app/sim_from_log.h"
#include "app/sim_fuzzing.h"

namespace CLI {
class App;
}

namespace signalbox::app {

class SimCommand {
 public:
  void add(CLI::App& app);
  // 0: all is as expected; 1: an expectation or an invariant does not hold; 2: cannot be run.
  int run();

 private:
  int run_scenarios();
  int list_metrics();

  CLI::App* run_ = nullptr;
  CLI::App* metrics_ = nullptr;
  CLI::App* compare_ = nullptr;
  CLI::App* fuzz_ = nullptr;
  CLI::App* from_log_ = nullptr;
  FuzzOptions fuzz_options_;
  FromLogOptions from_log_options_;
  CompareOptions compare_options_;
  std::vector<std::string> files_;
  std::optional<std::uint64_t> seed_;  // nothing: the scenario's
  std::uint64_t seeds_ = 1;
  std::vector<std::string> sets_;
  std::string output_ = "table";
  std::string out_;                    // file; empty: standard output
};

}  // namespace signalbox::app
