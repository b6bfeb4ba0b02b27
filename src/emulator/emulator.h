// SPDX-License-Identifier: Apache-2.0
// The whole command: engines on real sockets until SIGINT or SIGTERM.
#pragma once

#include "base/result.h"
#include "emulator/options.h"

namespace signalbox::emulator {

// Serves until a signal ends it; returns the exit code. Prints one line per address to standard
// output once they are open. Blocks SIGINT and SIGTERM while it runs.
Result<int> run(const EmulatorOptions& options);

}  // namespace signalbox::emulator
