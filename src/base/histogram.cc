// SPDX-License-Identifier: Apache-2.0
// Counting, ranking and merging over log buckets.
#include "base/histogram.h"

#include <algorithm>
#include <cmath>

namespace signalbox {
namespace {

constexpr int kBits = 6;  // 2^-7 = 0.78 % from a bucket's middle to its edge
static_assert(1.0 / (2 << kBits) <= Histogram::kRelativeError);

}  // namespace

Histogram::Histogram(double low, double high)
    : buckets_(low, high, kBits), counts_(buckets_.size(), 0) {}

void Histogram::record_many(double value, std::uint64_t times) {
  if (std::isnan(value) || times == 0) return;
  counts_[buckets_.index(value)] += times;
  min_ = count_ == 0 ? value : std::min(min_, value);
  max_ = count_ == 0 ? value : std::max(max_, value);
  sum_ += value * static_cast<double>(times);
  count_ += times;
}

double Histogram::quantile(double q) const {
  if (count_ == 0) return 0;
  const double exact = std::clamp(q, 0.0, 1.0) * static_cast<double>(count_);
  const auto rank = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::ceil(exact)));
  if (rank >= count_) return max_;
  if (rank == 1) return min_;
  std::uint64_t seen = 0;
  std::size_t i = 0;
  while (i < counts_.size() && (seen += counts_[i]) < rank) ++i;
  return std::clamp(buckets_.middle(i), min_, max_);
}

std::uint64_t Histogram::count_at_most(double bound) const {
  if (count_ == 0 || bound < min_) return 0;
  if (bound >= max_) return count_;
  const std::size_t last = buckets_.index(bound);
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i <= last; ++i) seen += counts_[i];
  return seen;
}

void Histogram::merge(const Histogram& other) {
  if (other.count_ == 0) return;
  for (std::size_t i = 0; i < other.counts_.size(); ++i) {
    if (other.counts_[i] == 0) continue;
    counts_[buckets_.index(other.buckets_.lower(i))] += other.counts_[i];
  }
  min_ = count_ == 0 ? other.min_ : std::min(min_, other.min_);
  max_ = count_ == 0 ? other.max_ : std::max(max_, other.max_);
  sum_ += other.sum_;
  count_ += other.count_;
}

void Histogram::clear() {
  std::fill(counts_.begin(), counts_.end(), 0);
  count_ = 0;
  sum_ = min_ = max_ = 0;
}

}  // namespace signalbox
