// SPDX-License-Identifier: Apache-2.0
// Filling of absent points, and bilinear interpolation.
#include "sim/engine/step_table.h"

#include <algorithm>

#include "base/check.h"

namespace signalbox::truth {
namespace {

// The cell that holds x, and where in it x lies: < 0 or > 1 beyond the table.
struct Place {
  std::size_t index;
  double fraction;
};

template <std::size_t N>
Place place(const std::array<double, N>& axis, double x) {
  std::size_t i = 0;
  while (i + 2 < N && axis[i + 1] <= x) ++i;
  return {i, (x - axis[i]) / (axis[i + 1] - axis[i])};
}

template <std::size_t R, std::size_t C, typename Points>
double bilinear(const std::array<double, R>& rows, const std::array<double, C>& columns,
                const Points& points, double row, double column) {
  const Place r = place(rows, row);
  const Place c = place(columns, column);
  const auto at = [&](std::size_t i, std::size_t j) {
    return static_cast<double>(points[i * C + j]);
  };
  const double low =
      at(r.index, c.index) * (1 - c.fraction) + at(r.index, c.index + 1) * c.fraction;
  const double high =
      at(r.index + 1, c.index) * (1 - c.fraction) + at(r.index + 1, c.index + 1) * c.fraction;
  return low * (1 - r.fraction) + high * r.fraction;
}

// Fills absent points from the row's last two, else from the row above scaled. Measured tables are
// full in the first column, but for single holes, and in the first row up to some column.
template <std::size_t R, std::size_t C, typename Points>
void fill(const std::array<double, R>& rows, const std::array<double, C>& columns, Points& points) {
  const auto at = [&](std::size_t i, std::size_t j) -> float& { return points[i * C + j]; };
  for (std::size_t i = 0; i < R; ++i) {
    for (std::size_t j = 0; j < C; ++j) {
      if (at(i, j) > 0) continue;
      double value = 0;
      if (j >= 2) {
        const double run = columns[j - 1] - columns[j - 2];
        const double slope = std::max(0.0, static_cast<double>(at(i, j - 1) - at(i, j - 2)) / run);
        value = at(i, j - 1) + slope * (columns[j] - columns[j - 1]);
      } else if (i > 0) {
        value = at(i - 1, j) * (j > 0 ? at(i, j - 1) / at(i - 1, j - 1) : rows[i] / rows[i - 1]);
      }
      CHECK(value > 0);
      at(i, j) = static_cast<float>(value);
    }
  }
}

}  // namespace

const std::array<double, StepTable::kNewPoints> StepTable::kNew = {
    16, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384};
const std::array<double, StepTable::kPrefixPoints> StepTable::kPrefix = {0,     1024,  4096,
                                                                         16384, 32768, 65536};
const std::array<double, StepTable::kBatchPoints> StepTable::kBatch = {1,  2,  4,   8,  16,
                                                                       32, 64, 128, 256};
const std::array<double, StepTable::kLengthPoints> StepTable::kLength = {
    128, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536};

StepTable::StepTable(const Prefill& prefill, const Decode& decode)
    : prefill_(prefill), decode_(decode) {
  fill(kNew, kPrefix, prefill_);
  fill(kBatch, kLength, decode_);
  prefill_fixed_ms_ = std::max(0.0, prefill_ms(0, 0));
  decode_fixed_ms_ = std::max(0.0, std::min(decode_ms(0, kLength[0]), decode_ms(1, kLength[0])));
}

StepTable StepTable::formula(double a, double b, double c, double d, double e, double f) {
  Prefill prefill{};
  Decode decode{};
  for (std::size_t i = 0; i < kNewPoints; ++i)
    for (std::size_t j = 0; j < kPrefixPoints; ++j)
      prefill[i * kPrefixPoints + j] =
          static_cast<float>(a + b * kNew[i] + c * kNew[i] * (kPrefix[j] + kNew[i] / 2));
  for (std::size_t i = 0; i < kBatchPoints; ++i)
    for (std::size_t j = 0; j < kLengthPoints; ++j)
      decode[i * kLengthPoints + j] =
          static_cast<float>(d + e * kBatch[i] + f * kBatch[i] * kLength[j]);
  return StepTable(prefill, decode);
}

double StepTable::prefill_ms(double fresh, double prefix) const {
  if (prefix >= 0) return bilinear(kNew, kPrefix, prefill_, fresh, prefix);
  // The first columns hardly differ at short lengths, so the slope comes from the far ones.
  const double none = bilinear(kNew, kPrefix, prefill_, fresh, 0);
  const double far = bilinear(kNew, kPrefix, prefill_, fresh, kPrefix[3]);
  return none + (far - none) / kPrefix[3] * prefix;
}

double StepTable::decode_ms(double batch, double length) const {
  return bilinear(kBatch, kLength, decode_, batch, length);
}

}  // namespace signalbox::truth
