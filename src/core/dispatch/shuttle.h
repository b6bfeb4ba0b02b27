// SPDX-License-Identifier: Apache-2.0
// The shuttle: what a free instance does about those who wait. Pure; under the core's lock.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/dispatch/config.h"
#include "core/dispatch/partition.h"
#include "core/dispatch/pass.h"
#include "core/dispatch/seating.h"

namespace signalbox::dispatch {

// Longest line that is planned at once; who stands behind it waits for the next call.
inline constexpr std::size_t kLineMax = 200;

enum class Why : std::uint8_t {
  Nobody,   // waits
  Filling,  // free seats: another instance departs soon, or more may come
  Departs,
};
std::string_view label(Why why);

// Who departs when an instance is free, or until when it is held.
class Shuttle {
 public:
  struct Plan {
    Why why = Why::Nobody;
    Instant until = kNever;             // Filling: plan again then, or when somebody comes
    std::vector<Passenger> line;        // those considered, in order of departure
    std::vector<Departure> departures;  // into `line`
  };

  explicit Shuttle(const Config& config) : config_(config) {}
  void set_config(const Config& config) { config_ = config; }

  // `waiting` may depart for this instance, in any order. On Departs the instance's ranks are left
  // as they are after the departures. The plan is good until the next call.
  const Plan& plan(std::span<const Passenger> waiting, const Instance& instance,
                   const Rhythm& rhythm, Instant now);

 private:
  Instant held_until(std::span<const Passenger> waiting, const Instance& instance,
                     const Rhythm& rhythm) const;

  Config config_;
  Plan plan_;
  Partition partition_;
};

// Whether a request goes elsewhere than to the instance that holds most of its prompt: when that
// one is busy for longer than the dearer prefill here is worth, and a crowd makes it worth more.
// All in seconds; `ranks` counts those of all instances.
bool leaves_home(const Config& config, double home_busy, double extra_prefill, std::size_t waiting,
                 std::size_t ranks);

}  // namespace signalbox::dispatch
