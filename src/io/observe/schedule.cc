// SPDX-License-Identifier: Apache-2.0
// Jitter only lengthens intervals: an engine's floor is never undercut.
#include "io/observe/schedule.h"

#include <algorithm>

namespace signalbox::observe {
namespace {

Duration scaled(Duration d, double factor) { return from_seconds(to_seconds(d) * factor); }

}  // namespace

Instant Schedule::after_success(Instant began, Rng& rng) {
  failures_ = 0;
  const Duration wanted = interval_ > Duration::zero() ? interval_ : config_->interval;
  const Duration interval = std::max(wanted, floor_);
  double stretch = 1 + config_->jitter * rng.uniform();
  if (!spread_) stretch += rng.uniform();
  spread_ = true;
  return began + scaled(interval, stretch);
}

Instant Schedule::after_failure(Instant now, Rng& rng) {
  Duration wait = config_->retry_min;
  for (int i = 0; i < failures_ && wait < config_->retry_max; ++i) wait *= 2;
  ++failures_;
  return now + scaled(std::min(wait, config_->retry_max), rng.uniform(0.5, 1.0));
}

Instant Schedule::not_before(Instant wanted, Instant began) const {
  return std::max(wanted, began + floor_);
}

}  // namespace signalbox::observe
