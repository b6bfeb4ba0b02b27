// SPDX-License-Identifier: Apache-2.0
// Bucket search is linear: some sixteen bounds, the small ones first, where most values fall.
#include "io/telemetry/metric.h"

#include <cmath>

#include "base/check.h"

namespace signalbox::telemetry {

Histogram::Histogram(std::span<const double> bounds)
    : bounds_(bounds.begin(), bounds.end()),
      counts_(new std::atomic<std::uint64_t>[bounds.size() + 1]) {
  for (std::size_t i = 0; i <= bounds_.size(); ++i) counts_[i] = 0;
  for (std::size_t i = 1; i < bounds_.size(); ++i) CHECK(bounds_[i] > bounds_[i - 1]);
}

void Histogram::observe(double value) {
  if (std::isnan(value)) return;
  std::size_t i = 0;
  while (i < bounds_.size() && value > bounds_[i]) ++i;
  counts_[i].fetch_add(1, std::memory_order_relaxed);
  sum_.fetch_add(value, std::memory_order_relaxed);
}

std::vector<std::uint64_t> Histogram::counts() const {
  std::vector<std::uint64_t> out(bounds_.size() + 1);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = counts_[i].load(std::memory_order_relaxed);
  return out;
}

std::span<const double> latency_bounds() {
  static constexpr double kBounds[] = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
                                       1,     2.5,    5,     10,   30,    60,   120, 300};
  return kBounds;
}

std::span<const double> token_bounds() {
  static constexpr double kBounds[] = {1,    4,     16,    64,     256,    1024,
                                       4096, 16384, 65536, 262144, 1048576};
  return kBounds;
}

}  // namespace signalbox::telemetry
