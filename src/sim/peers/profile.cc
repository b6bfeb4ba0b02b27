// SPDX-License-Identifier: Apache-2.0
// Fits three coefficients.
#include "sim/peers/profile.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace signalbox::peers {
namespace {

using Row = std::array<double, 4>;  // three coefficients and the right-hand side

// Gauss with pivots.
std::array<double, 3> solve(std::array<Row, 3> m) {
  for (std::size_t i = 0; i < 3; ++i) {
    std::size_t pivot = i;
    for (std::size_t j = i + 1; j < 3; ++j) {
      if (std::abs(m[j][i]) > std::abs(m[pivot][i])) pivot = j;
    }
    std::swap(m[i], m[pivot]);
    for (std::size_t j = 0; j < 3; ++j) {
      if (j == i || m[i][i] == 0) continue;
      const double factor = m[j][i] / m[i][i];
      for (std::size_t k = i; k < 4; ++k) m[j][k] -= factor * m[i][k];
    }
  }
  std::array<double, 3> x{};
  for (std::size_t i = 0; i < 3; ++i) x[i] = m[i][i] == 0 ? 0 : m[i][3] / m[i][i];
  return x;
}

}  // namespace

double Profile::prefill_seconds(std::int64_t uncached, std::int64_t cached) const {
  const auto u = static_cast<double>(std::max<std::int64_t>(0, uncached));
  return a + b * u + c * u * (static_cast<double>(cached) + u / 2);
}

double Profile::peak_prefill() const {
  return static_cast<double>(step_tokens_max) / prefill_seconds(step_tokens_max, 0);
}

Profile measure(const truth::EngineSpec& spec) {
  constexpr std::array<double, 7> kFresh = {64, 256, 1024, 2048, 4096, 8192, 16384};
  constexpr std::array<double, 4> kPrefix = {0, 4096, 16384, 65536};
  std::array<Row, 3> normal{};
  for (const double fresh : kFresh) {
    for (const double prefix : kPrefix) {
      const double seconds = spec.table.prefill_ms(fresh, prefix) / 1e3;
      if (!(seconds > 0)) continue;
      const Row row = {1 / seconds, fresh / seconds, fresh * (prefix + fresh / 2) / seconds, 1};
      for (std::size_t i = 0; i < 3; ++i) {
        for (std::size_t k = 0; k < 4; ++k) normal[i][k] += row[i] * row[k];
      }
    }
  }
  const std::array<double, 3> x = solve(normal);
  Profile profile;
  profile.a = std::max(0.0, x[0]);
  profile.b = std::max(1e-9, x[1]);
  profile.c = std::max(0.0, x[2]);
  profile.block_tokens = spec.block_tokens;
  profile.step_tokens_max = spec.step_tokens_max;
  return profile;
}

}  // namespace signalbox::peers
