// SPDX-License-Identifier: Apache-2.0
// The entry of the simulator: a scenario in, a report out. Pure; one thread; the same scenario
// gives the same report.
#pragma once

#include <string>

#include "sim/report.h"
#include "sim/scenario.h"

namespace signalbox::sim {

Report run(const Scenario& scenario);

// The report as a few lines for people, the seed first.
std::string text(const Report& report);

}  // namespace signalbox::sim
