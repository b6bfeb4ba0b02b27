// SPDX-License-Identifier: Apache-2.0
// From wide to narrow, each level with the weight of what it has seen.
#include "core/perf/output_length.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace signalbox::perf {
namespace {

constexpr DecayedQuantile::Shape kShape{1, 1 << 21, 3};
constexpr double kNormal90 = 1.2816;  // 0.9 of a normal distribution lies below

double normal_cdf(double x) { return std::erfc(-x / std::numbers::sqrt2) / 2; }

double square(double x) { return x * x; }

// E[min(X, cap)^power] of a lognormal.
double lognormal_moment(double median, double spread, double power, double cap) {
  const double full = std::pow(median, power) * std::exp(square(power * spread) / 2);
  if (!std::isfinite(cap)) return full;
  const double z = std::log(cap / median) / spread;
  return full * normal_cdf(z - power * spread) + std::pow(cap, power) * (1 - normal_cdf(z));
}

// What one level says: moments of min(X, cap), logarithms of quantiles.
struct Level {
  double first = 0;
  double second = 0;
  double log50 = 0;
  double log90 = 0;
};

Level look(const DecayedQuantile& sketch, double cap) {
  Level level;
  double total = 0;
  sketch.for_each([&](double value, double weight) {
    const double v = std::min(value, cap);
    total += weight;
    level.first += weight * v;
    level.second += weight * v * v;
  });
  level.first /= total;
  level.second /= total;
  double seen = 0;
  double p50 = 0;
  double p90 = 0;
  sketch.for_each([&](double value, double weight) {
    if (seen < 0.5 * total) p50 = value;
    if (seen < 0.9 * total) p90 = value;
    seen += weight;
  });
  level.log50 = std::log(p50);
  level.log90 = std::log(p90);
  return level;
}

// E[X given X >= cap] of a lognormal; far in its tail, half as much again as the cap.
double lognormal_beyond(double median, double spread, double cap) {
  const double z = std::log(cap / median) / spread;
  const double share = 1 - normal_cdf(z);
  if (share < 1e-3) return cap * 1.5;
  return lognormal_moment(median, spread, 1, std::numeric_limits<double>::infinity()) *
         (1 - normal_cdf(z - spread)) / share;
}

double cap_of(std::int64_t max_tokens) {
  return max_tokens > 0 ? static_cast<double>(max_tokens)
                        : std::numeric_limits<double>::infinity();
}

}  // namespace

std::size_t OutputLengths::Hash::operator()(const LevelKey& k) const noexcept {
  std::uint64_t h = (static_cast<std::uint64_t>(k.tenant) << 32) | k.model;
  h = (h ^ (h >> 29)) * 0xBF58476D1CE4E5B9ull;
  h ^= (static_cast<std::uint64_t>(k.route) << 8) | k.level;
  h = (h ^ (h >> 32)) * 0x94D049BB133111EBull;
  return static_cast<std::size_t>(h ^ (h >> 29));
}

OutputLengths::OutputLengths(Config config)
    : config_(config), levels_(static_cast<std::size_t>(config.keys_max)) {}

OutputLengths::LevelKey OutputLengths::key_at(const LengthKey& key, int level) {
  LevelKey k;
  k.level = static_cast<std::uint8_t>(level);
  if (level >= 1) k.model = key.model.value();
  if (level >= 2) k.route = key.route.value();
  if (level >= 3) k.tenant = key.tenant.value();
  return k;
}

// What an answer would have had that was cut at `cap`: the mean of the longer ones, as they are
// known at each level.
double OutputLengths::uncut(const LengthKey& key, double cap) const {
  double length = lognormal_beyond(config_.prior_median_tokens, config_.prior_spread, cap);
  for (int level = 0; level < kLevels; ++level) {
    const DecayedQuantile* sketch = levels_.peek(key_at(key, level));
    if (sketch == nullptr || sketch->empty()) continue;
    double weight = 0, sum = 0;
    sketch->for_each([&](double value, double w) {
      if (value < cap) return;
      weight += w;
      sum += w * value;
    });
    if (weight <= 0) continue;
    length += weight / (weight + config_.shrink_answers) * (sum / weight - length);
  }
  return std::max(length, cap);
}

void OutputLengths::observe(const LengthKey& key, std::int64_t tokens, std::int64_t max_tokens) {
  if (tokens < 1) return;
  double length = static_cast<double>(tokens);
  if (max_tokens > 0 && tokens >= max_tokens) length = uncut(key, length);
  // Narrow first, so that wide levels are the last to be forgotten.
  for (int level = kLevels - 1; level >= 0; --level) {
    auto& sketch = levels_.find_or_make(key_at(key, level), [&] {
      return DecayedQuantile::by_samples(config_.half_life_answers, kShape);
    });
    sketch.record(length);
  }
}

double OutputLengths::trust(const DecayedQuantile& sketch) const {
  return sketch.weight() / (sketch.weight() + config_.shrink_answers);
}

OutputLengths::Estimate OutputLengths::estimate(const LengthKey& key,
                                                std::int64_t max_tokens) const {
  const double cap = cap_of(max_tokens);
  const double median = config_.prior_median_tokens;
  const double spread = config_.prior_spread;
  Level all{lognormal_moment(median, spread, 1, cap), lognormal_moment(median, spread, 2, cap),
            std::log(median), std::log(median) + kNormal90 * spread};
  for (int level = 0; level < kLevels; ++level) {
    const DecayedQuantile* sketch = levels_.peek(key_at(key, level));
    if (sketch == nullptr || sketch->empty()) continue;
    const Level own = look(*sketch, cap);
    const double share = trust(*sketch);
    all.first += share * (own.first - all.first);
    all.second += share * (own.second - all.second);
    all.log50 += share * (own.log50 - all.log50);
    all.log90 += share * (own.log90 - all.log90);
  }
  Estimate e;
  e.mean = std::clamp(all.first, 1.0, cap);
  e.sd = std::sqrt(std::max(0.0, all.second - square(all.first)));
  e.p50 = std::clamp(std::exp(all.log50), 1.0, cap);
  e.p90 = std::clamp(std::exp(all.log90), 1.0, cap);
  return e;
}

}  // namespace signalbox::perf
