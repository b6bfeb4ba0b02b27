// SPDX-License-Identifier: Apache-2.0
// Draws gaps. A gap in which a moment falls is length-biased: for Gamma(k) it is Gamma(k + 1); for
// Weibull(k) its k-th power is Gamma(1 + 1/k).
#include "sim/trace/gaps.h"

#include <algorithm>
#include <cmath>

namespace signalbox::trace {

GapShape gaps_of_cv(double cv) {
  const double shape = cv > 0 ? 1 / (cv * cv) : kRegular;
  return {GapShape::Pattern::Gamma, std::clamp(shape, kShapeMin, kRegular)};
}

double draw_gamma(double shape, Rng& rng) {
  if (shape < 1) {
    const double more = draw_gamma(shape + 1, rng);
    return more * std::pow(1 - rng.uniform(), 1 / shape);
  }
  const double d = shape - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = rng.normal();
    const double root = 1 + c * x;
    if (root <= 0) continue;
    const double v = root * root * root;
    if (std::log(1 - rng.uniform()) < x * x / 2 + d - d * v + d * std::log(v)) return d * v;
  }
}

double draw_gap(const GapShape& gaps, Rng& rng) {
  const double k = std::max(gaps.shape, kShapeMin);
  if (k >= kRegular) return 1;
  if (gaps.pattern == GapShape::Pattern::Gamma) {
    return k == 1 ? rng.exponential(1) : draw_gamma(k, rng) / k;
  }
  return std::exp(std::log(rng.exponential(1)) / k - std::lgamma(1 + 1 / k));
}

double draw_rest(const GapShape& gaps, Rng& rng) {
  const double k = std::max(gaps.shape, kShapeMin);
  const double part = rng.uniform();
  if (k >= kRegular) return part;
  if (gaps.pattern == GapShape::Pattern::Gamma) return part * draw_gamma(k + 1, rng) / k;
  const double power = draw_gamma(1 + 1 / k, rng);
  return part * std::exp(std::log(power) / k - std::lgamma(1 + 1 / k));
}

}  // namespace signalbox::trace
