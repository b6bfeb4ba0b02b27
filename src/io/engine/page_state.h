// SPDX-License-Identifier: Apache-2.0
// Turns a Prometheus page of a known engine into an EngineState: which names carry what, and how
// the series of several ranks become one figure. Pure; any thread.
#pragma once

#include <string_view>

#include "core/model/engine_state.h"
#include "core/model/fleet.h"
#include "io/engine/metrics_text.h"

namespace signalbox::engine {

struct PageState {
  model::EngineState state;  // incarnation is left 0: IncarnationTracker gives it
  double start_time = -1;    // when the process began, unix seconds; negative: not told
  int samples = 0;           // wanted samples seen; 0: this page is not of this engine
};

// `rank` >= 0 takes the series of that data-parallel rank alone (those without a rank label belong
// to every rank); negative takes the whole server: requests, tokens and capacity are sums over
// ranks, KV usage is their mean. Series that tensor- or pipeline-parallel processes repeat count
// once. OpenAi and Auto have no page: the state stays unknown.
PageState read_page(model::EngineKind kind, std::string_view page, int rank);

// Whose page this is, by its first known metric name; Auto: nobody's.
model::EngineKind page_owner(std::string_view page);

}  // namespace signalbox::engine
