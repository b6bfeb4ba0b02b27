// SPDX-License-Identifier: Apache-2.0
// The engines of one process and their addresses, and the whole command around them.
#pragma once

#include <memory>
#include <vector>

#include "base/result.h"
#include "emulator/engine.h"
#include "emulator/options.h"
#include "io/net/acceptor.h"
#include "io/net/loop.h"

namespace signalbox::emulator {

class Emulator {
 public:
  // Starts listening; the engines work while `loop`, which must outlive them, runs.
  static Result<std::unique_ptr<Emulator>> create(net::Loop& loop, const EmulatorOptions& options);
  ~Emulator();

  std::size_t size() const { return engines_.size(); }
  Engine& engine(std::size_t i) { return *engines_[i]; }

 private:
  Emulator() = default;

  std::vector<std::unique_ptr<Engine>> engines_;
  std::unique_ptr<net::Acceptor> admin_;
};

// Serves until SIGINT or SIGTERM, which it blocks meanwhile; returns the exit code. Prints one line
// per address to standard output once they are open.
Result<int> run(const EmulatorOptions& options);

}  // namespace signalbox::emulator
