// SPDX-License-Identifier: Apache-2.0
// Picks each room's block.
#include "core/flow/config_of.h"

namespace signalbox::flow {

Config config_of(const spec::Gateway& gateway) {
  Config config;
  config.admission = gateway.admission;
  config.cache = gateway.cache;
  config.calibrator = gateway.prediction.calibration;
  config.lengths = gateway.prediction.output_lengths;
  config.ledger = gateway.ledger;
  config.recovery = gateway.recovery;
  config.routing = gateway.routing;
  config.decisions_kept = gateway.limits.decisions_kept;
  return config;
}

}  // namespace signalbox::flow
