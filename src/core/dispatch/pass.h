// SPDX-License-Identifier: Apache-2.0
// A pass of a gated batch server: all ranks of an instance compute one chunk each, together, and it
// lasts as long as its fullest rank. Values only.
#pragma once

#include <algorithm>
#include <cstddef>
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
  double context = 0;       // tokens of its prompt that are held there, before those
  int home = -1;            // the rank that holds most of its prompt; -1: none
  double home_tokens = 0;   // the same there, with less to compute
  double home_seconds = 0;
  double home_context = 0;

  double tokens_on(std::size_t rank) const { return at_home(rank) ? home_tokens : tokens; }
  double seconds_on(std::size_t rank) const { return at_home(rank) ? home_seconds : seconds; }
  double context_on(std::size_t rank) const { return at_home(rank) ? home_context : context; }
  // Where it is cheapest.
  double least_tokens() const { return home < 0 ? tokens : home_tokens; }
  double least_seconds() const { return home < 0 ? seconds : home_seconds; }

 private:
  bool at_home(std::size_t rank) const { return home >= 0 && rank == std::size_t(home); }
};

// What a rank computes in the next pass: left of earlier ones, and boarded since.
struct Rank {
  double tokens = 0;     // at most a chunk
  double attention = 0;  // sum of tokens·(context + tokens/2) over the prompts
  double seconds = 0;    // beyond the pass's overhead
};

struct Instance {
  std::span<Rank> ranks;        // at least one
  double chunk_tokens = 8192;   // of prompts that a rank computes in one pass, > 0
  double overhead_seconds = 0;  // of a pass, whatever is in it
  double token_seconds = 0;     // and for each token
  double attention_seconds = 0; // and for each token and token of context before it

  // A rank takes as much of a prompt as its chunk has room for.
  void compute(std::size_t rank, double tokens, double context) const {
    Rank& r = ranks[rank];
    const double taken = std::clamp(chunk_tokens - r.tokens, 0.0, tokens);
    const double attention = taken * (context + taken / 2);
    r.tokens += taken;
    r.attention += attention;
    r.seconds += token_seconds * taken + attention_seconds * attention;
  }
  // How long the pass takes: as long as its fullest rank.
  double pass_seconds() const {
    double longest = 0;
    for (const Rank& r : ranks) longest = std::max(longest, r.seconds);
    return overhead_seconds + longest;
  }
};

// What all instances of a pool tell of its rhythm.
struct Rhythm {
  int instances = 1;            // alive, >= 1
  Duration pass{};              // mean length of a pass
  Instant last_departure{};     // of any instance
};

}  // namespace signalbox::dispatch
