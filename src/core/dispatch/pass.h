// SPDX-License-Identifier: Apache-2.0
// A pass of a gated batch server: all ranks of an instance compute one chunk each, together, and it
// lasts as long as its fullest rank. Values only.
#pragma once

#include <cstdint>
#include <span>

#include "base/time.h"
#include "core/model/ids.h"

namespace signalbox::dispatch {

// A request that waits, as one instance would see it.
struct Passenger {
  model::RequestId request;
  Instant since{};          // when it came
  double tokens = 1;        // of its prompt to compute there, > 0
  double seconds = 0;       // that they take a rank, >= 0, beyond a pass's overhead
  Instant latest = kNever;  // departure that still keeps its objective
};

// What a rank has left of earlier passes.
struct Rank {
  double tokens = 0;
  double seconds = 0;
};

struct Instance {
  std::span<Rank> ranks;        // at least one
  double chunk_tokens = 8192;   // of prompts that a rank computes in one pass, > 0
  double overhead_seconds = 0;  // of a pass, whatever is in it
};

// What all instances of a pool tell of its rhythm.
struct Rhythm {
  int instances = 1;            // alive, >= 1
  Duration pass{};              // mean length of a pass
  Instant last_departure{};     // of any instance
};

}  // namespace signalbox::dispatch
