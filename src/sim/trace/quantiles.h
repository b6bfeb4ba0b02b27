// SPDX-License-Identifier: Apache-2.0
// A distribution that is known by its quantiles. Pure.
#pragma once

#include <vector>

#include "base/describe.h"

namespace signalbox::trace {

struct Quantile {
  double share = 0;   // of all values that are at most `value`; in [0, 1]
  double value = 0;
  bool operator==(const Quantile&) const = default;
};

template <typename Visitor>
void describe(Visitor& v, Quantile& c) {
  v(c.share, "share", "Share of values that are at most `value`.", Range{0, 1});
  v(c.value, "value", "The quantile.", Range{0, 1e7});
}

class Quantiles {
 public:
  Quantiles() = default;
  // In rising order of share, values not falling. Straight lines between them.
  explicit Quantiles(std::vector<Quantile> points) : points_(std::move(points)) {}
  // The same, but lines above three quarters are bent (value = low + (high - low)·x^bend) so that
  // the mean is this one, as far as the quantiles allow: a long tail's last straight line would
  // triple it.
  Quantiles(std::vector<Quantile> points, double mean);

  bool empty() const { return points_.empty(); }
  // The value at a share in [0, 1]; outside the given shares, the nearest one's. Must not be empty.
  double at(double share) const;
  double mean() const;

 private:
  double width(std::size_t line) const;

  std::vector<Quantile> points_;
  double bend_ = 1;
};

}  // namespace signalbox::trace
