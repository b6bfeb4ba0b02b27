// SPDX-License-Identifier: Apache-2.0
// Decisions as JSON, and what the core knows as metrics.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "core/flow/decision_ring.h"
#include "io/gateway/published.h"
#include "io/gateway/shared.h"
#include "io/host/core_host.h"
#include "io/telemetry/exposition.h"

namespace signalbox::app {

enum class Detail { Summary, Full };

nlohmann::ordered_json decision_json(const flow::DecisionRecord& record,
                                     const gateway::Published& published,
                                     const gateway::RequestNames& names, Detail detail);

// Gauges and counters of queue, endpoints, decisions, calibration and ledger, under short looks.
void collect_core_metrics(telemetry::TextWriter& writer, host::CoreHost& host,
                          const gateway::Published& published);

}  // namespace signalbox::app
