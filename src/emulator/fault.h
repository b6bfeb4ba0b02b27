// SPDX-License-Identifier: Apache-2.0
// What an engine is told to do wrong.
#pragma once

#include <cstdint>
#include <optional>

namespace signalbox::emulator {

// Faults of answers. Counts are of events of one stream; absent means not at all.
struct Fault {
  int status = 0;                   // > 0: generation is answered with this status
  int retry_after = -1;             // seconds, with `status`; < 0: no such header
  std::optional<std::int64_t> cut_after_events;    // then the connection closes without an end
  bool reset = false;               // cuts are resets, not orderly closes
  bool cut_plain = false;           // half of a plain answer, then the connection closes
  std::optional<std::int64_t> stall_after_events;  // then silence
  std::int64_t stall_ms = 0;        // how long; 0: until the client leaves or the fault is cleared
  bool garbage = false;             // bytes that are no HTTP
  bool garbage_json = false;        // proper HTTP around broken JSON
  std::optional<std::int64_t> error_event_after;   // then the engine's error event and a clean end
  std::int64_t times = -1;          // generation requests it hits; < 0: all
  int health_status = 0;            // > 0: what /health answers
  bool active() const {
    return status > 0 || cut_after_events || cut_plain || stall_after_events || garbage ||
           garbage_json || error_event_after;
  }
};

// One call of /emulator/fault: replaces the answers' fault, and acts on the engine.
struct FaultCommand {
  Fault fault;
  bool clear = false;                  // heals everything first
  std::optional<bool> refuse;          // closes or opens the listening socket
  std::optional<double> slow;          // every step takes this many times as long; 1 heals
  std::int64_t stall_ms = 0;           // without stall_after_events: no step ends for so long
  bool drop_cache = false;             // the prefix cache is forgotten
  bool crash = false;                  // all connections reset, all state lost
  std::int64_t for_ms = 0;             // > 0: healed by itself after this; with crash: time down
};

}  // namespace signalbox::emulator
