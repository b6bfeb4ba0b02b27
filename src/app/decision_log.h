// SPDX-License-Identifier: Apache-2.0
// The decision log: one JSON line per placement, for people. Follows the core's ring from the
// control loop, so that no line is written under the lock or on an I/O thread.
#pragma once

#include <cstdint>
#include <memory>

#include "app/controller.h"
#include "io/gateway/shared.h"
#include "io/host/core_host.h"
#include "io/net/loop.h"
#include "io/telemetry/log_file.h"

namespace signalbox::app {

class DecisionLog {
 public:
  DecisionLog(net::Loop& loop, host::CoreHost& host, const Controller& controller,
              const gateway::Shared& shared, std::unique_ptr<telemetry::LogFile> file);

  telemetry::LogFile& file() { return *file_; }
  // Writes what was decided since; also at the end.
  void follow();

 private:
  net::Loop& loop_;
  host::CoreHost& host_;
  const Controller& controller_;
  const gateway::Shared& shared_;
  std::unique_ptr<telemetry::LogFile> file_;
  std::uint64_t written_ = 0;  // number of the last decision written
  net::Timer timer_;
};

}  // namespace signalbox::app
