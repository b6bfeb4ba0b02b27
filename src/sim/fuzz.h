// SPDX-License-Identifier: Apache-2.0
// Worlds that nobody thought of: whole configurations drawn from their declared ranges, with load
// and faults that heal; what must hold of each; and the smallest scenario that still breaks it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "sim/scenario.h"

namespace signalbox::sim {

// Fleet, load, faults and disorder of random_scenario(seed), under settings of all their declared
// ranges, in every other one; most of its load comes when the last fault has healed.
Scenario fuzz_scenario(std::uint64_t seed);

struct FuzzVerdict {
  std::string violation;          // empty: all holds
  double scenario_hours = 0;      // virtual, of eight engines, that it took to find out
};

// Runs it. Every invariant holds after every event, and a scenario whose faults heal converges:
// long after the last, at least a third of what would be answered without them is. Of clients that
// time out within half a minute and retry that is not asked.
FuzzVerdict judge_fuzz(const Scenario& scenario);

// Makes it smaller, part by part, while `breaks` is true of it: less load, fewer faults, groups and
// engines, less disorder, settings at their defaults. At most `tries` calls.
Scenario shrink(Scenario scenario, const std::function<bool(const Scenario&)>& breaks, int tries);

}  // namespace signalbox::sim
