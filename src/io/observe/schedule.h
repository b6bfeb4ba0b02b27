// SPDX-License-Identifier: Apache-2.0
// When to look at one engine next: at its interval, or sooner after failures. Pure.
#pragma once

#include "base/rng.h"
#include "base/time.h"
#include "io/observe/config.h"

namespace signalbox::observe {

class Schedule {
 public:
  // `config` must outlive the schedule.
  explicit Schedule(const Config& config) : config_(&config) {}

  // Between looks; zero: that of the configuration.
  void set_interval(Duration interval) { interval_ = interval; }

  // The engine's own shortest interval between looks at its load.
  void set_floor(Duration floor) { floor_ = floor; }

  // After a look that began at `began` succeeded. The very first interval is lengthened by up to
  // one more, so that engines that were found together are not looked at together.
  Instant after_success(Instant began, Rng& rng);

  // After a failure: retry_min, doubled with each further one up to retry_max, shortened at random
  // by up to half.
  Instant after_failure(Instant now, Rng& rng);

  // Not before the engine's floor allows it. For failures of looks that reached the engine.
  Instant not_before(Instant wanted, Instant began) const;

  int failures() const { return failures_; }

 private:
  const Config* config_;
  Duration interval_{};
  Duration floor_{};
  int failures_ = 0;  // in a row
  bool spread_ = false;
};

}  // namespace signalbox::observe
