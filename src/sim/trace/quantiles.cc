// SPDX-License-Identifier: Apache-2.0
// Interpolates.
#include "sim/trace/quantiles.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace signalbox::trace {
namespace {

constexpr double kBent = 0.75;  // lines that begin at this share or above
constexpr double kLeastBend = 0.05;
constexpr double kMostBend = 1e3;

}  // namespace

// Of the line that ends at this point.
double Quantiles::width(std::size_t line) const {
  return points_[line].share - points_[line - 1].share;
}

Quantiles::Quantiles(std::vector<Quantile> points, double mean) : points_(std::move(points)) {
  double rise = 0;       // what the bent lines add if they rise at once
  double without = 0;    // the mean if they stay at their lower ends
  if (points_.empty()) return;
  without += points_.front().share * points_.front().value;
  without += (1 - points_.back().share) * points_.back().value;
  for (std::size_t i = 1; i < points_.size(); ++i) {
    const double low = points_[i - 1].value;
    const double high = points_[i].value;
    const bool bent = points_[i - 1].share >= kBent;
    without += width(i) * (bent ? low : (low + high) / 2);
    if (bent) rise += width(i) * (high - low);
  }
  // Each bent line adds the 1/(bend + 1)-th part of its rise.
  if (rise <= 0) return;
  bend_ = mean > without ? std::clamp(rise / (mean - without) - 1, kLeastBend, kMostBend)
                         : kMostBend;
}

double Quantiles::at(double share) const {
  CHECK(!points_.empty());
  const auto above = std::upper_bound(
      points_.begin(), points_.end(), share,
      [](double wanted, const Quantile& point) { return wanted < point.share; });
  if (above == points_.begin()) return points_.front().value;
  if (above == points_.end()) return points_.back().value;
  const Quantile& low = *(above - 1);
  double x = (share - low.share) / (above->share - low.share);
  if (low.share >= kBent && bend_ != 1) x = std::pow(x, bend_);
  return low.value + (above->value - low.value) * x;
}

double Quantiles::mean() const {
  CHECK(!points_.empty());
  double sum = points_.front().share * points_.front().value +
               (1 - points_.back().share) * points_.back().value;
  for (std::size_t i = 1; i < points_.size(); ++i) {
    const double bend = points_[i - 1].share >= kBent ? bend_ : 1;
    const double rise = points_[i].value - points_[i - 1].value;
    sum += width(i) * (points_[i - 1].value + rise / (bend + 1));
  }
  return sum;
}

}  // namespace signalbox::trace
