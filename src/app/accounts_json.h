// SPDX-License-Identifier: Apache-2.0
// The ledger as JSON: the page /v1/accounts.
// Keeps INV-4 visible: tenants, models, pools and endpoints each add up to all, whatever has left
// the configuration since.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "io/gateway/published.h"
#include "io/host/core_host.h"

namespace signalbox::app {

// Totals by the names of the published configuration. What is booked under none of them is in a row
// of its own: `(other)` in each section (no tenant, models and pools that were removed), and
// `(removed from POOL)` among endpoints. No resource and no address has such a name.
nlohmann::ordered_json accounts_json(const host::CoreHost& host,
                                     const gateway::Published& published);

}  // namespace signalbox::app
