// SPDX-License-Identifier: Apache-2.0
// Draws the load of random scenarios: sessions and traces, arrivals of every kind, impatient users.
// Private to sim.
#pragma once

#include <cstdint>

#include "base/rng.h"
#include "sim/load_settings.h"

namespace signalbox::sim {

// Small sessions whose calls wait for each other, some side by side, over a few system prompts.
// Lengths are about those of the load; some prompts fit nowhere.
trace::Trace random_sessions(const Load& load, Rng& rng);

// The same prompts as an open loop of `per_second` calls.
trace::Trace random_open_loop(const Load& load, double per_second, Rng& rng);

// Overlays a load with arrivals, a trace, habits and libraries, as the seed draws them.
void add_random_kinds(Load& load, double per_second, std::uint64_t seed);

}  // namespace signalbox::sim
