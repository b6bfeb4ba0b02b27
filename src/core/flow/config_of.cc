// SPDX-License-Identifier: Apache-2.0
// Picks each room's block.
#include "core/flow/config_of.h"

namespace signalbox::flow {

Config config_of(const spec::Gateway& gateway) {
  Config config;
  config.admission = gateway.admission;
  config.cache = gateway.cache;
  config.dispatch = gateway.dispatch;
  config.calibrator = gateway.prediction.calibration;
  config.lengths = gateway.prediction.output_lengths;
  config.ledger = gateway.ledger;
  config.recovery = gateway.recovery;
  config.routing = gateway.routing;
  config.decisions_kept = gateway.limits.decisions_kept;
  return config;
}

spec::Gateway gateway_of(const Config& config) {
  spec::Gateway gateway;
  gateway.admission = config.admission;
  gateway.cache = config.cache;
  gateway.dispatch = config.dispatch;
  gateway.prediction.calibration = config.calibrator;
  gateway.prediction.output_lengths = config.lengths;
  gateway.ledger = config.ledger;
  gateway.recovery = config.recovery;
  gateway.routing = config.routing;
  gateway.limits.decisions_kept = static_cast<int>(config.decisions_kept);
  return gateway;
}

}  // namespace signalbox::flow
