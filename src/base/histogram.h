// SPDX-License-Identifier: Apache-2.0
// A mergeable histogram whose quantiles are within 1 % of the exact ones. Fixed size, made at
// construction; record is O(1) and allocates nothing. One thread at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "base/log_buckets.h"

namespace signalbox {

class Histogram {
 public:
  static constexpr double kRelativeError = 0.01;

  // Values in [low, high) keep the relative error; those outside are counted in the end buckets
  // (count, sum, min and max stay exact). The default suits seconds: 1 us to a day, 18 KiB.
  explicit Histogram(double low = 1e-6, double high = 86'400);

  // NaN is dropped.
  void record(double value) { record_many(value, 1); }
  void record_many(double value, std::uint64_t times);

  // The value of rank ceil(q * count), q in [0, 1]; 0 when empty. Never outside [min, max].
  double quantile(double q) const;
  // How many values are <= bound, exact to the bucket that holds bound (which counts whole).
  std::uint64_t count_at_most(double bound) const;

  // Adds what `other` has counted. Ranges may differ; values beyond this range go to its ends.
  void merge(const Histogram& other);
  void clear();

  std::uint64_t count() const { return count_; }
  double sum() const { return sum_; }
  double min() const { return count_ == 0 ? 0 : min_; }
  double max() const { return count_ == 0 ? 0 : max_; }
  double mean() const { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }

 private:
  LogBuckets buckets_;
  std::vector<std::uint64_t> counts_;
  std::uint64_t count_ = 0;
  double sum_ = 0;
  double min_ = 0;
  double max_ = 0;
};

}  // namespace signalbox
