// SPDX-License-Identifier: Apache-2.0
// When the independent ones come: Poisson, regular or bursty gaps, on/off bursts, ramps, tides.
// Draws from streams of its own. Pure.
#pragma once

#include <cstdint>

#include "base/rng.h"
#include "base/time.h"
#include "sim/load_settings.h"
#include "sim/trace/gaps.h"

namespace signalbox::sim {

class ArrivalProcess {
 public:
  // `per_second` > 0.
  ArrivalProcess(const Arrivals& arrivals, double per_second, std::uint64_t seed);

  // The next one's time from the start, not before the last one's; kEver: nobody comes any more.
  Duration next();

 private:
  double level() const;
  void toggle();

  trace::GapShape gaps_;
  trace::RateCurve curve_;
  double per_second_;
  Bursts bursts_;
  Rng gaps_rng_;
  Rng bursts_rng_;
  bool on_ = true;
  Duration toggle_at_ = trace::kEver;
  Duration at_{};
  bool begun_ = false;
  bool over_;                        // nobody comes any more
};

}  // namespace signalbox::sim
