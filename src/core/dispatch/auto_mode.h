// SPDX-License-Identifier: Apache-2.0
// `dispatch: auto`: whether to hold requests for passes, from what was seen of the engines. Pure.
#pragma once

#include "core/dispatch/config.h"
#include "core/dispatch/gate_watch.h"

namespace signalbox::dispatch {

// What the mode should be, for `instances` engines, when it `holds` now. Holding wins where passes
// are gated and one who is sent at once waits longer for the next than one who waits here for the
// next of all engines (design: W > T/(N+1) + bubble; W is at least half a pass in the share of time
// in which one is under way). It ends at half of that, so that it does not come and go; and as soon
// as there is no barrier. Nothing changes before enough was seen since the last change.
bool should_hold(const Config& config, const GateWatch& watch, int instances, bool holds);

}  // namespace signalbox::dispatch
