// SPDX-License-Identifier: Apache-2.0
// Forward decay: the gain of new samples grows; when it is large, everything is divided by it.
#include "base/decayed_quantile.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace signalbox {
namespace {

constexpr double kGainMax = 1 << 20;  // floats keep 24 bits: beyond this old weights are noise

}  // namespace

DecayedQuantile DecayedQuantile::by_samples(double half_life, Shape shape) {
  CHECK(half_life > 0);
  return DecayedQuantile(1 / half_life, Duration(1), shape);
}

DecayedQuantile DecayedQuantile::by_time(Duration half_life, Shape shape) {
  CHECK(half_life > Duration::zero());
  return DecayedQuantile(0, half_life, shape);
}

DecayedQuantile::DecayedQuantile(double half_lives_per_sample, Duration half_life, Shape shape)
    : buckets_(shape.low, shape.high, shape.bits),
      weights_(buckets_.size(), 0),
      per_sample_(half_lives_per_sample),
      half_life_(half_life) {}

void DecayedQuantile::record(double value, Instant now) {
  if (std::isnan(value)) return;
  if (!empty()) {
    double half_lives = per_sample_;
    if (per_sample_ == 0) {
      half_lives = now > newest_ ? to_seconds(now - newest_) / to_seconds(half_life_) : 0;
    }
    gain_ *= std::exp2(std::min(half_lives, 200.0));
  }
  newest_ = empty() ? now : std::max(newest_, now);
  if (gain_ > kGainMax) rescale();
  const std::size_t bucket = buckets_.index(value);
  first_ = end_ == 0 ? bucket : std::min(first_, bucket);
  end_ = std::max(end_, bucket + 1);
  weights_[bucket] += static_cast<float>(gain_);
  total_ += gain_;
  moment_ += gain_ * value;
}

void DecayedQuantile::rescale() {
  const double factor = 1 / gain_;
  // The total is summed anew so that weights lost to rounding leave it too.
  total_ = 0;
  for (float& w : weights_) {
    w *= static_cast<float>(factor);
    if (w < 1e-12f) w = 0;
    total_ += static_cast<double>(w);
  }
  moment_ *= factor;
  gain_ = 1;
}

double DecayedQuantile::quantile(double q) const {
  if (empty()) return 0;
  const double wanted = std::clamp(q, 0.0, 1.0) * total_;
  double seen = 0;
  std::size_t last = 0;
  for (std::size_t i = first_; i < end_; ++i) {
    if (weights_[i] <= 0) continue;
    last = i;
    seen += static_cast<double>(weights_[i]);
    if (seen >= wanted) break;
  }
  return buckets_.middle(last);
}

double DecayedQuantile::mean() const { return empty() ? 0 : moment_ / total_; }

double DecayedQuantile::weight() const { return total_ / gain_; }

}  // namespace signalbox
