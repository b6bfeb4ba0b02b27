// SPDX-License-Identifier: Apache-2.0
// How much of some traffic a fleet can serve, whoever places it: what "80 % load" is a share of.
#pragma once

#include <vector>

#include "sim/scenario.h"
#include "sim/trace/trace.h"

namespace signalbox::sim {

struct Capacity {
  double requests_per_second = 0;
  double cached_share = 0;     // of prompt tokens
  double service_seconds = 0;  // of a mean request in a full engine, prefill and decode
  double sessions_at_once = 0; // of a trace of sessions: that bring this rate
};

// The rate at which the fleet's time is full when work divides evenly: an engine's time for a mean
// request is its prefill, and its share of the steps of a batch as large as half the KV cache
// allows. Prompt tokens are cached as in one least-recently-used cache of the other halves
// together; sessions whose starts nobody knows run as many at once as bring the rate. Nobody
// reaches all of it: requests neither divide evenly nor go to who has the prefix. Some passes over
// the pieces of all prompts. The trace has calls, the fleet engines.
Capacity capacity(const std::vector<EngineGroup>& groups, const trace::Trace& trace);

}  // namespace signalbox::sim
