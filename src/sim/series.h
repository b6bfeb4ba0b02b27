// SPDX-License-Identifier: Apache-2.0
// What a run was like over time: a bounded number of buckets of equal width, which merge in pairs
// when the run outgrows them. Pure; the same run gives the same series.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/time.h"

namespace signalbox::sim {

// A look at everything at one moment.
struct Moment {
  double queued = 0;     // requests that wait at the gateway
  double waiting = 0;    // sequences that wait in engines
  double running = 0;    // sequences that run in engines: the batches
  double kv = 0;         // share of all KV blocks that sequences hold
  double instances = 0;  // engines that are up and in the fleet
  double starting = 0;   // that come up, and are not there yet
};

// Sums over what happened in [i·width, (i+1)·width), and over the looks taken in it.
struct Bucket {
  std::int64_t moments = 0;
  Moment sum;
  double queued_max = 0;
  double kv_max = 0;
  std::int64_t arrived = 0;    // requests
  std::int64_t answered = 0;   // requests completed
  std::int64_t good = 0;       // of them, within all objectives
  double ttft_sum = 0;         // s, of the completed ones
  double ttft_max = 0;

  void add(const Bucket& other);
  // The mean of one figure over the looks; 0 without any.
  double mean(double Moment::* figure) const {
    return moments > 0 ? sum.*figure / static_cast<double>(moments) : 0;
  }
};

class Series {
 public:
  static constexpr std::size_t kBucketsMax = 600;
  static constexpr Duration kWidthFirst = std::chrono::milliseconds(100);

  // Times must not be negative.
  void look(Instant at, const Moment& moment);
  void arrived(Instant at) { ++bucket(at).arrived; }
  // A request was completed at `at`; `ttft` in seconds.
  void answered(Instant at, double ttft, bool good);

  // The present distance of looks, too: one a bucket is enough.
  Duration width() const { return width_; }
  const std::vector<Bucket>& buckets() const { return buckets_; }
  // All that happened in the buckets that begin in [from, until).
  Bucket between(Duration from, Duration until) const;
  // How long these buckets are, in seconds.
  double seconds_between(Duration from, Duration until) const;

 private:
  Bucket& bucket(Instant at);

  Duration width_ = kWidthFirst;
  std::vector<Bucket> buckets_;
};

}  // namespace signalbox::sim
