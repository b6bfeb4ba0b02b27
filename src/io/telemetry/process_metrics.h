// SPDX-License-Identifier: Apache-2.0
// The standard figures of our own process (`process_*`), read from /proc at each scrape.
#pragma once

#include "io/telemetry/registry.h"

namespace signalbox::telemetry {

void add_process_metrics(Registry& registry);

}  // namespace signalbox::telemetry
