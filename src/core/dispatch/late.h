// SPDX-License-Identifier: Apache-2.0
// Late binding: an engine is sent what its present pass and the next take, so that it never runs
// dry; who comes beyond that waits here, where the order can still change. Pure.
#pragma once

#include <cstdint>

#include "base/time.h"
#include "core/dispatch/config.h"

namespace signalbox::dispatch {

// What an engine was sent and has not computed: prompts without a first token, in their order.
struct Feed {
  int requests = 0;
  std::int64_t tokens = 0;        // to compute, of all
  std::int64_t head_tokens = 0;   // of the first; it may be computed already but for a part
  std::int64_t chunk_tokens = 1;  // that one pass takes, >= 1
};

// Whether it has enough. Never while nobody waits behind its first: where that one stands is not
// known, so that at most its last chunk is counted.
bool fed(const Config& config, const Feed& feed);

// The order of departure: the shorter ones' turn comes sooner, but nobody is overtaken for ever.
// `prefill_seconds`: what it takes the engine, >= 0.
Instant turn(const Config& config, Instant arrival, double prefill_seconds);

}  // namespace signalbox::dispatch
