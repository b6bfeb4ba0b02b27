// SPDX-License-Identifier: Apache-2.0
// Decayed medians of ratios, one for each class of occupancy.
#include "core/perf/stretch.h"

#include <algorithm>
#include <bit>
#include <cstdint>

#include "base/check.h"

namespace signalbox::perf {
namespace {

constexpr int kAlike = 4;       // below it each number of others is a class
constexpr int kClasses = 28;    // two for each doubling; the last begins with 12,288 others
constexpr double kHalfLife = 50;
constexpr double kPriorAnswers = 2;  // that would have taken as long as foreseen
constexpr DecayedQuantile::Shape kRatios{.low = 1.0 / 32, .high = 512, .bits = 4};

int class_of(double others) {
  const auto n = static_cast<std::uint32_t>(std::min(others, 1e9));
  if (n < kAlike) return static_cast<int>(n);
  const int doublings = std::bit_width(n) - std::bit_width(std::uint32_t{kAlike});
  const int upper_half = static_cast<int>(n >> (std::bit_width(n) - 2)) & 1;
  return std::min(kClasses - 1, kAlike + 2 * doublings + upper_half);
}

}  // namespace

Stretch::Stretch() : ratios_(kClasses, DecayedQuantile::by_samples(kHalfLife, kRatios)) {}

void Stretch::observe(double others, double foreseen, double actual) {
  CHECK(others >= 0 && foreseen > 0 && actual >= 0);
  ratios_[static_cast<std::size_t>(class_of(others))].record(actual / foreseen);
}

// Of a class that nothing is known of: as of the nearest one with fewer others.
double Stretch::median(double others) const {
  for (int i = class_of(others); i >= 0; --i) {
    const DecayedQuantile& ratios = ratios_[static_cast<std::size_t>(i)];
    if (ratios.empty()) continue;
    const double known = ratios.weight() / (ratios.weight() + kPriorAnswers);
    return 1 + known * (ratios.quantile(0.5) - 1);
  }
  return 1;
}

}  // namespace signalbox::perf
