// SPDX-License-Identifier: Apache-2.0
// The decision log: one JSON line per placement, for people. Follows the core's ring from the
// control loop, so that no line is written under the lock or on an I/O thread.
// Keeps: one look is a bounded piece of work, however fast decisions are made. What the ring has
// forgotten before it was looked at is lost to the log; a line says how many are missing there.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

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

  enum class Left : std::uint8_t { Nothing, More };
  // Writes the oldest of what was decided since the last look, a bounded number of decisions.
  Left follow();
  // Writes what is left, for a bounded time: at the end, when nothing more is decided.
  void finish();

  std::uint64_t lost() const { return lost_; }

 private:
  void tell_lost(std::uint64_t count);

  net::Loop& loop_;
  host::CoreHost& host_;
  const Controller& controller_;
  const gateway::Shared& shared_;
  std::unique_ptr<telemetry::LogFile> file_;
  std::uint64_t written_ = 0;  // number of the last decision written or lost
  std::uint64_t lost_ = 0;
  std::optional<Instant> told_;  // when the operator heard of losses
  net::Timer timer_;
};

}  // namespace signalbox::app
