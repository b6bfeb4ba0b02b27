// SPDX-License-Identifier: Apache-2.0
// How long one engine step takes, by measured tables: milliseconds over (new tokens, cached prefix)
// for prefill and over (batch, KV length of each) for decode. Bilinear between points, linear
// beyond them. Pure; immutable after it is made.
#pragma once

#include <array>
#include <cstddef>

namespace signalbox::truth {

class StepTable {
 public:
  static constexpr std::size_t kNewPoints = 10;
  static constexpr std::size_t kPrefixPoints = 6;
  static constexpr std::size_t kBatchPoints = 9;
  static constexpr std::size_t kLengthPoints = 9;
  static const std::array<double, kNewPoints> kNew;        // 16 .. 16,384 tokens
  static const std::array<double, kPrefixPoints> kPrefix;  // 0 .. 65,536 tokens
  static const std::array<double, kBatchPoints> kBatch;    // 1 .. 256 sequences
  static const std::array<double, kLengthPoints> kLength;  // 128 .. 65,536 tokens

  // Row by row, the last axis fastest; 0 marks an absent point, which is extrapolated from its
  // neighbours.
  using Prefill = std::array<float, kNewPoints * kPrefixPoints>;
  using Decode = std::array<float, kBatchPoints * kLengthPoints>;

  StepTable(const Prefill& prefill, const Decode& decode);

  // The table of `prefill = a + b·new + c·new·(prefix + new/2)`, `decode = d + e·batch + f·kv`, in
  // milliseconds: exact for decode, and for prefill at the points.
  static StepTable formula(double a, double b, double c, double d, double e, double f);

  // Milliseconds of a prefill of `fresh` tokens behind `prefix` cached ones. `prefix` may be
  // negative: less attention than one sequence of that length has.
  double prefill_ms(double fresh, double prefix) const;
  // Milliseconds of a decode step of `batch` sequences that hold `length` tokens each.
  double decode_ms(double batch, double length) const;

  // The part of a step that does not depend on what is in it: both curves extrapolated to nothing.
  double prefill_fixed_ms() const { return prefill_fixed_ms_; }
  double decode_fixed_ms() const { return decode_fixed_ms_; }

 private:
  Prefill prefill_;
  Decode decode_;
  double prefill_fixed_ms_ = 0;
  double decode_fixed_ms_ = 0;
};

}  // namespace signalbox::truth
