// SPDX-License-Identifier: Apache-2.0
// Buckets with a bounded relative width: each power of two is cut into 2^bits equal parts, so the
// middle of a value's bucket is within 2^-(bits+1) of it (6 bits: 0.8 %, 3 bits: 6.3 %).
// Boundaries depend on `bits` alone, so ranges that differ still share them. Pure.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "base/check.h"

namespace signalbox {

class LogBuckets {
 public:
  // Covers [low, high), both rounded outwards to powers of two. 0 < low < high, 0 <= bits <= 10.
  LogBuckets(double low, double high, int bits) : bits_(bits) {
    CHECK(low > 0 && low < high && std::isfinite(high) && bits >= 0 && bits <= 10);
    first_ = bits_of(std::exp2(std::floor(std::log2(low)))) >> shift();
    const std::uint64_t end = bits_of(std::exp2(std::ceil(std::log2(high)))) >> shift();
    size_ = static_cast<std::size_t>(end - first_);
  }

  std::size_t size() const { return size_; }
  int bits() const { return bits_; }

  // The bucket of a value; values outside the range, NaN and negatives fall into the nearest end
  // (NaN and negatives into the lowest).
  std::size_t index(double value) const {
    if (!(value > 0)) return 0;
    const std::uint64_t raw = bits_of(value) >> shift();
    if (raw <= first_) return 0;
    const std::uint64_t offset = raw - first_;
    return offset >= size_ ? size_ - 1 : static_cast<std::size_t>(offset);
  }
  // The edges of bucket i: [lower(i), lower(i + 1)).
  double lower(std::size_t i) const { return std::bit_cast<double>((first_ + i) << shift()); }
  double middle(std::size_t i) const { return (lower(i) + lower(i + 1)) / 2; }
  double low() const { return lower(0); }
  double high() const { return lower(size_); }

 private:
  static std::uint64_t bits_of(double v) { return std::bit_cast<std::uint64_t>(v); }
  int shift() const { return 52 - bits_; }

  int bits_;
  std::uint64_t first_ = 0;  // exponent and leading mantissa bits of the lowest bucket
  std::size_t size_ = 0;
};

}  // namespace signalbox
