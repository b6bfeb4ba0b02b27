// SPDX-License-Identifier: Apache-2.0
// The wait that holding would save, against the wait that it costs.
#include "core/dispatch/auto_mode.h"

#include <algorithm>

namespace signalbox::dispatch {
namespace {

constexpr int kPasses = 16;        // between two changes
constexpr double kBubble = 0.005;  // s, from a first token to the next departure

}  // namespace

bool should_hold(const Config& config, const GateWatch& watch, int instances, bool holds) {
  if (watch.passes() < kPasses) return holds;
  const Barrier barrier = watch.barrier();
  if (barrier == Barrier::No) return false;
  const double here = config.auto_threshold * watch.pass() / (std::max(1, instances) + 1) + kBubble;
  const double under_way = watch.busy() * watch.pass() / 2;
  // Who departs with a pass has waited for it here.
  if (holds) return under_way > here / 2;
  return barrier == Barrier::Yes && std::max(under_way, watch.wait()) > here;
}

}  // namespace signalbox::dispatch
