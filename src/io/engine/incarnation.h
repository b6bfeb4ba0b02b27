// SPDX-License-Identifier: Apache-2.0
// Tells one life of an engine process from the next, so that what was known of its cache is
// forgotten when it restarts. Sans I/O; one per address, used by one thread.
#pragma once

#include <cstdint>

#include "core/model/engine_state.h"

namespace signalbox::engine {

class IncarnationTracker {
 public:
  // A connection was refused: whoever answers next may be another process.
  void refused() { refused_ = true; }

  // Takes a look at the whole server and gives the number of the process's life, from 1. Another
  // start time (unix seconds) or a counter that fell means a new life; where no start time is told,
  // so does an engine that refused and is back. A start time before 2001 or after 2100 is garbage
  // (llama.cpp's header is) and counts as not told.
  std::uint64_t observe(double start_time, const model::EngineState& whole);

  std::uint64_t current() const { return life_; }

 private:
  std::uint64_t life_ = 0;
  bool refused_ = false;
  double start_time_ = -1;
  std::int64_t prompt_tokens_ = -1;
  std::int64_t generated_tokens_ = -1;
};

}  // namespace signalbox::engine
