// SPDX-License-Identifier: Apache-2.0
// Quantiles and mean of a stream in which old values count less: a value's weight halves every
// `half_life`, counted in samples or in time. Bounded size (log buckets of float weights), record
// is O(1) but for a rare rescaling. Forward decay (Cormode et al., ICDE 2009): new values weigh
// more, old ones are never touched. Pure; one thread at a time.
#pragma once

#include <cstddef>
#include <vector>

#include "base/log_buckets.h"
#include "base/time.h"

namespace signalbox {

class DecayedQuantile {
 public:
  // Values in [low, high) keep the relative error 2^-(bits+1); others count at the ends.
  struct Shape {
    double low = 1;
    double high = 1 << 21;
    int bits = 3;  // 6.3 %, 168 buckets, 0.7 KiB
  };

  // Half-lives must be > 0.
  static DecayedQuantile by_samples(double half_life, Shape shape);
  static DecayedQuantile by_time(Duration half_life, Shape shape);

  // `now` matters to the time form alone; one that lies before an earlier one counts as that one.
  // NaN is dropped.
  void record(double value, Instant now = {});

  // The value below which q of the weight lies, q in [0, 1]; 0 when empty.
  double quantile(double q) const;
  // Weighted mean of the values themselves, not of their buckets; 0 when empty.
  double mean() const;
  // Calls f(value, weight) for every bucket with weight, in rising order; the value is the middle
  // of its bucket. For several statistics in one pass.
  template <typename Function>
  void for_each(Function f) const {
    for (std::size_t i = first_; i < end_; ++i) {
      if (weights_[i] > 0) f(buckets_.middle(i), static_cast<double>(weights_[i]));
    }
  }
  // Effective number of samples: the sum of weights, the newest sample weighing 1. The time form
  // is as of the newest sample.
  double weight() const;
  bool empty() const { return total_ <= 0; }

 private:
  DecayedQuantile(double half_lives_per_sample, Duration half_life, Shape shape);
  void rescale();

  LogBuckets buckets_;
  std::vector<float> weights_;
  std::size_t first_ = 0;  // buckets outside [first_, end_) have never been used
  std::size_t end_ = 0;
  double per_sample_;    // half-lives that each sample advances; 0: the time form
  Duration half_life_;   // of the time form
  double gain_ = 1;      // weight of the newest sample
  double total_ = 0;     // sum of weights
  double moment_ = 0;    // sum of weight * value
  Instant newest_{};
};

}  // namespace signalbox
