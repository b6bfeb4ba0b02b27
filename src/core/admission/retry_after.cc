// SPDX-License-Identifier: Apache-2.0
// A division with limits.
#include "core/admission/retry_after.h"

#include <cmath>

namespace signalbox::admission {

Duration retry_after(double seconds_of_work, double rate) {
  constexpr double kMost = 120;
  const double seconds = std::ceil(seconds_of_work / rate);
  if (!(rate > 0) || !(seconds <= kMost)) return std::chrono::seconds(120);
  return std::chrono::seconds(seconds < 1 ? 1 : static_cast<int>(seconds));
}

}  // namespace signalbox::admission
