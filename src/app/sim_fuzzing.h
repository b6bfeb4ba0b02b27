// SPDX-License-Identifier: Apache-2.0
// `signalbox sim fuzz`: worlds drawn by seeds until something breaks.
#pragma once

#include <cstdint>
#include <string>

namespace CLI {
class App;
}

namespace signalbox::app {

struct FuzzOptions {
  double hours = 10;           // of scenarios with eight engines
  std::uint64_t seed = 1;      // the first
  unsigned jobs = 0;           // runs at once; 0: one per core
  int shrink_tries = 150;      // runs that go into making a failing scenario smaller
  int findings_max = 1;        // stops after so many
  std::string keep = ".";      // folder for the smallest scenarios
};

CLI::App* add_fuzz(CLI::App& sim, FuzzOptions& options);

// 0: nothing broke; 1: something did, and a file tells how to see it again; 2: that file cannot be
// written.
int sim_fuzz(const FuzzOptions& options);

}  // namespace signalbox::app
