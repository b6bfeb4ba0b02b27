// SPDX-License-Identifier: Apache-2.0
// SMG's defaults for what goes wrong: lightseekorg/smg docs/configuration/resilience.md.
#include "sim/peers/rule.h"

namespace signalbox::peers {

Traits smg_traits() {
  using namespace std::chrono_literals;
  Traits traits;
  traits.retry.most = 5;
  traits.retry.on_connect_error = traits.retry.on_failure = traits.retry.on_throttled = true;
  traits.retry.first = 50ms;
  traits.retry.longest = 30s;
  traits.retry.factor = 1.5;
  traits.retry.jitter = 0.2;
  traits.breaker = {10, 60s, 3};
  traits.unready_after = 180s;
  return traits;
}

}  // namespace signalbox::peers
