// SPDX-License-Identifier: Apache-2.0
// How many come in a second, lately.
#pragma once

#include <algorithm>
#include <cmath>

#include "base/time.h"

namespace signalbox::dispatch {

class ArrivalRate {
 public:
  void count(Instant now) {
    rate_ = per_second(now) + 1 / kWindow;
    at_ = now;
  }
  // Decays by e in ten seconds.
  double per_second(Instant now) const {
    return rate_ * std::exp(-std::max(0.0, to_seconds(now - at_)) / kWindow);
  }

 private:
  static constexpr double kWindow = 10;  // s
  double rate_ = 0;
  Instant at_{};
};

}  // namespace signalbox::dispatch
