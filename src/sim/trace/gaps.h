// SPDX-License-Identifier: Apache-2.0
// How irregular arrivals are: the distribution of the gaps between them, of mean 1. Draws are our
// own, so that every standard library gives the same run. Pure.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

#include "base/describe.h"
#include "base/rng.h"

namespace signalbox::trace {

struct GapShape {
  enum class Pattern : std::uint8_t { Gamma, Weibull };
  Pattern pattern = Pattern::Gamma;
  double shape = 1;  // 1: Poisson; below: bursty; above kRegular: all gaps are equal
};

inline constexpr double kShapeMin = 1e-3;
inline constexpr double kRegular = 1e6;

// Gamma gaps of this coefficient of variation (deviation over mean), 0 for equal gaps.
GapShape gaps_of_cv(double cv);

// A gap, of mean 1.
double draw_gap(const GapShape& gaps, Rng& rng);
// From a moment that knows nothing of the last arrival to the next one: the rest of the gap it
// falls into. With it first, the expected number of arrivals in any time is exactly that time.
double draw_rest(const GapShape& gaps, Rng& rng);

// Of this shape (> 0) and scale 1, so of mean `shape`. Marsaglia, Tsang 2000; below shape 1 by the
// power of a uniform draw.
double draw_gamma(double shape, Rng& rng);

}  // namespace signalbox::trace
