// SPDX-License-Identifier: Apache-2.0
// Chooses the place of a request: the feasible endpoint with the least score, which is the one an
// exhaustive comparison would find. Draws from `rng` once, and twice more when places are tied.
#pragma once

#include "base/rng.h"
#include "base/time.h"
#include "core/routing/decision.h"
#include "core/routing/query.h"
#include "core/routing/state.h"

namespace signalbox::routing {

// Places that meet all objectives go before those that do not; among the latter the least
// violation wins and `objective_missed` is set. Changes nothing of the load: the caller reports
// what it really sends by State::dispatched().
Decision decide(State& state, const Query& query, Instant now, Rng& rng);

}  // namespace signalbox::routing
