// SPDX-License-Identifier: Apache-2.0
// When the independent ones come: Poisson, regular or bursty gaps, on/off bursts, ramps, tides.
// Draws from streams of its own. Pure.
#pragma once

#include <cstdint>

#include "base/describe.h"
#include "base/rng.h"
#include "base/time.h"
#include "sim/trace/gaps.h"
#include "sim/trace/rate_curve.h"

namespace signalbox::sim {

// An on/off process: arrivals come in bursts of random length. The mean rate stays what it is.
struct Bursts {
  Duration on{};        // mean length of a burst; 0: no bursts
  Duration off{};       // and of the time between two
  double quiet = 0;     // rate between bursts, relative to that within
};

template <typename Visitor>
void describe(Visitor& v, Bursts& c) {
  v(c.on, "on", "Mean length of a burst; 0: there are none.", Range{0, 1e6});
  v(c.off, "off", "Mean time between two bursts.", Range{0, 1e6});
  v(c.quiet, "quiet", "Rate between bursts, relative to the rate within one.", Range{0, 1});
}

// When the independent ones come: gaps of a Gamma distribution, on a clock that runs as fast as the
// curve and the bursts say.
struct Arrivals {
  double cv = 1;                          // deviation of gaps over their mean; 1: Poisson
  Bursts bursts;
  trace::RateCurve curve;                 // relative to the load's rate
};

template <typename Visitor>
void describe(Visitor& v, Arrivals& c) {
  v(c.cv, "cv", "Coefficient of variation of the gaps; 0: regular, 1: Poisson.", Range{0, 30});
  v(c.bursts, "bursts", "Arrivals in bursts.");
  v(c.curve, "curve", "The rate over time, relative to the load's: a ramp, a tide.");
}

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
