// SPDX-License-Identifier: Apache-2.0
// `signalbox engine`: the emulator's options on the command line. One option per described field.
#pragma once

#include <string>

#include "emulator/options.h"

namespace CLI {
class App;
}

namespace signalbox::app {

class EngineCommand {
 public:
  void add(CLI::App& app);
  int run();

 private:
  emulator::EmulatorOptions options_;
  std::string dialect_ = "vllm";
};

}  // namespace signalbox::app
