// SPDX-License-Identifier: Apache-2.0
// Instant and Duration. The clock has no now(): whoever decides takes the time as an argument, so
// the server (real clock) and the simulator (virtual clock) run the same code. Reading the real
// clock is the business of io/net alone.
#pragma once

#include <chrono>
#include <cstdint>

namespace signalbox {

struct CoreClock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<CoreClock>;
  static constexpr bool is_steady = true;
};

using Duration = CoreClock::duration;   // signed nanoseconds
using Instant = CoreClock::time_point;  // since an origin of the driver's choice

constexpr Instant kNever = Instant::max();

constexpr double to_seconds(Duration d) { return static_cast<double>(d.count()) * 1e-9; }

// Seconds beyond what a Duration holds (292 years) saturate; NaN becomes zero.
constexpr Duration from_seconds(double seconds) {
  if (!(seconds == seconds)) return Duration::zero();
  if (seconds >= 9.2e9) return Duration::max();
  if (seconds <= -9.2e9) return Duration::min();
  return Duration(static_cast<std::int64_t>(seconds * 1e9));
}

}  // namespace signalbox
