// SPDX-License-Identifier: Apache-2.0
// Remaining output tokens of the requests of one endpoint, in bins by powers of two. Keeps INV-3:
// empty again after the last removal.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

namespace signalbox::routing {

class Remaining {
 public:
  void add(std::int64_t tokens) {
    const int bin = bin_of(tokens);
    ++counts_[bin];
    sums_[bin] += tokens;
  }
  void remove(std::int64_t tokens) {
    const int bin = bin_of(tokens);
    --counts_[bin];
    sums_[bin] -= tokens;
  }

  // Estimate of Σ min(remaining, limit): exact for bins that lie on one side of `limit`; inside
  // its own bin Σ min is taken as min of sums, at most a tenth too high for spread-out values.
  // Concave and growing in `limit`.
  std::int64_t overlap(std::int64_t limit) const {
    std::int64_t sum = 0;
    for (int bin = 0; bin < kBins; ++bin) sum += std::min(sums_[bin], counts_[bin] * limit);
    return sum;
  }
  std::int64_t total() const {
    std::int64_t sum = 0;
    for (const std::int64_t bin : sums_) sum += bin;
    return sum;
  }
  bool empty() const {
    return std::ranges::all_of(counts_, [](auto n) { return n == 0; }) &&
           std::ranges::all_of(sums_, [](auto n) { return n == 0; });
  }

 private:
  static constexpr int kBins = 16;  // the last one holds all from 32,768 on

  static int bin_of(std::int64_t tokens) {
    const auto positive = static_cast<std::uint64_t>(std::max<std::int64_t>(tokens, 1));
    return std::min(static_cast<int>(std::bit_width(positive)) - 1, kBins - 1);
  }

  std::array<std::int32_t, kBins> counts_{};
  std::array<std::int64_t, kBins> sums_{};
};

}  // namespace signalbox::routing
