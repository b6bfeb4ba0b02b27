// SPDX-License-Identifier: Apache-2.0
// Chooses a source; draws what all of them have.
#include "sim/load.h"

#include <algorithm>

#include "sim/synthetic_load.h"
#include "sim/trace_load.h"

namespace signalbox::sim {

std::unique_ptr<LoadSource> make_load(const Load& load, std::uint64_t seed,
                                      const Surroundings& surroundings) {
  if (!load.trace) return std::make_unique<SyntheticLoad>(load, seed, surroundings);
  if (load.trace->sessions.empty()) {
    return std::make_unique<OpenLoopLoad>(load, seed, surroundings);
  }
  return std::make_unique<ClosedLoopLoad>(load, seed, surroundings);
}

Session new_session(const Load& load, const Surroundings& surroundings, std::uint64_t number,
                    Rng& rng) {
  Session session;
  session.number = number;
  if (load.tenants > 0) {
    const std::uint64_t tenant = rng.below(static_cast<std::uint64_t>(load.tenants));
    session.tenant = model::TenantId(1 + static_cast<std::uint32_t>(tenant));
  }
  session.route = model::RouteId(1 + static_cast<std::uint32_t>(rng.below(surroundings.routes)));
  if (!surroundings.loras.empty() && rng.chance(load.adapters)) {
    session.lora = surroundings.loras[rng.below(surroundings.loras.size())];
  }
  return session;
}

void add_habits(const Load& load, Rng& rng, Ask& ask) {
  ask.stream = !rng.chance(load.plain);
  if (rng.chance(load.leavers)) {
    ask.leaves_after = from_seconds(rng.exponential(std::max(1e-6, to_seconds(load.patience))));
  }
  if (rng.chance(load.pressers)) {
    ask.presses_after = from_seconds(rng.exponential(std::max(1e-6, to_seconds(load.impatience))));
  }
}

}  // namespace signalbox::sim
