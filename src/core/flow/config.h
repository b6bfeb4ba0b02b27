// SPDX-License-Identifier: Apache-2.0
// Everything that configures the core: the deciding rooms' own settings, and the fleet.
#pragma once

#include <memory>

#include "core/admission/config.h"
#include "core/cache/config.h"
#include "core/dispatch/config.h"
#include "core/ledger/config.h"
#include "core/model/fleet.h"
#include "core/perf/calibrator.h"
#include "core/perf/output_length.h"
#include "core/recovery/config.h"
#include "core/routing/config.h"

namespace signalbox::flow {

struct Config {
  admission::Config admission;
  cache::Config cache;
  dispatch::Config dispatch;
  ledger::Config ledger;
  recovery::Config recovery;
  routing::Config routing;
  perf::CalibratorConfig calibrator;
  perf::OutputLengthsConfig lengths;
  std::int64_t decisions_kept = 10'000;  // placements that can still be explained
};

// What apply() takes: never null.
struct Setup {
  Config config;
  std::shared_ptr<const model::Fleet> fleet;
};

}  // namespace signalbox::flow
