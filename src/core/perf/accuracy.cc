// SPDX-License-Identifier: Apache-2.0
// Books predictions against what happened.
#include "core/perf/accuracy.h"

#include <algorithm>
#include <cmath>

namespace signalbox::perf {
namespace {

// Errors from 0.1 % to a factor of e^8, within 3 %.
constexpr DecayedQuantile::Shape kShape{1e-3, 8, 4};

}  // namespace

Accuracy::Accuracy(std::size_t recent_max, double half_life)
    : recent_(recent_max),
      rate_(1 - std::exp2(-1 / half_life)),
      errors_{Errors{DecayedQuantile::by_samples(half_life, kShape)},
              Errors{DecayedQuantile::by_samples(half_life, kShape)}} {}

void Accuracy::record(const Pair& pair) {
  const double log = std::log(pair.actual / pair.predicted);
  if (!(pair.actual > 0) || !(pair.predicted > 0) || !std::isfinite(log)) return;
  recent_.push(pair);
  Errors& e = of(pair.quantity);
  ++e.count;
  e.absolute.record(std::abs(log));
  // A plain mean at first, then a moving one.
  const double rate = std::max(rate_, 1 / static_cast<double>(e.count));
  e.bias += rate * (log - e.bias);
  e.coverage += rate * ((std::abs(log) <= 2 * pair.sigma ? 1 : 0) - e.coverage);
}

Accuracy::Summary Accuracy::summary(Quantity quantity) const {
  const Errors& e = errors_[static_cast<std::size_t>(quantity)];
  return {e.count, e.absolute.quantile(0.5), e.absolute.quantile(0.9), e.bias, e.coverage};
}

}  // namespace signalbox::perf
