// SPDX-License-Identifier: Apache-2.0
// Keeps every prediction with its actual: errors per pool and quantity as decayed quantiles, and
// the latest pairs for people. Pure, bounded, O(1) a record; under its owner's lock.
#pragma once

#include <array>
#include <cstdint>

#include "base/bounded.h"
#include "base/decayed_quantile.h"
#include "base/time.h"
#include "core/model/ids.h"

namespace signalbox::perf {

enum class Quantity : std::uint8_t { Ttft, E2e };

// One of a pool.
class Accuracy {
 public:
  struct Pair {
    model::RequestId request;
    model::EndpointId endpoint;
    Quantity quantity = Quantity::Ttft;
    Instant at{};
    double predicted = 0;  // s
    double actual = 0;     // s
    double sigma = 0;      // deviation of log(actual / predicted) that was claimed
  };
  struct Summary {
    std::uint64_t count = 0;   // of all time
    double median_error = 0;   // of |log(actual / predicted)|; 0.1 is about 10 %
    double p90_error = 0;
    double bias = 0;           // mean of log(actual / predicted): above 0, slower than predicted
    double coverage = 0;       // share of pairs within two claimed deviations; honest: 0.95
  };

  // Pairs kept, and the number of pairs after which one counts half.
  explicit Accuracy(std::size_t recent_max = 256, double half_life = 500);

  // Pairs that are not positive and finite are dropped.
  void record(const Pair& pair);
  Summary summary(Quantity quantity) const;
  // Oldest first.
  const RingBuffer<Pair>& recent() const { return recent_; }

 private:
  struct Errors {
    DecayedQuantile absolute;
    double bias = 0;
    double coverage = 0;
    std::uint64_t count = 0;
  };
  Errors& of(Quantity quantity) { return errors_[static_cast<std::size_t>(quantity)]; }

  RingBuffer<Pair> recent_;
  double rate_;  // of the moving means
  std::array<Errors, 2> errors_;
};

}  // namespace signalbox::perf
