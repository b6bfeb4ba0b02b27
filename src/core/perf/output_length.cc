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

double normal_cdf(double x) { return std::erfc(-x / std::numbers::sqrt2) / 2; }

// Inverse of normal_cdf by bisection; calls are few.
double normal_quantile(double q) {
  double low = -8;
  double high = 8;
  for (int i = 0; i < 40; ++i) {
    const double middle = (low + high) / 2;
    (normal_cdf(middle) < q ? low : high) = middle;
  }
  return low;
}

double square(double x) { return x * x; }

// E[min(X, cap)^power] of a lognormal.
double lognormal_moment(double median, double spread, double power, double cap) {
  const double full = std::pow(median, power) * std::exp(square(power * spread) / 2);
  if (!std::isfinite(cap)) return full;
  const double z = std::log(cap / median) / spread;
  return full * normal_cdf(z - power * spread) + std::pow(cap, power) * (1 - normal_cdf(z));
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

void OutputLengths::observe(const LengthKey& key, std::int64_t tokens) {
  if (tokens < 1) return;
  // Narrow first, so that wide levels are the last to be forgotten.
  for (int level = kLevels - 1; level >= 0; --level) {
    auto& sketch = levels_.find_or_make(key_at(key, level), [&] {
      return DecayedQuantile::by_samples(config_.half_life_answers, kShape);
    });
    sketch.record(static_cast<double>(tokens));
  }
}

double OutputLengths::quantile(const LengthKey& key, double q, std::int64_t max_tokens) const {
  const double z = normal_quantile(std::clamp(q, 1e-4, 1 - 1e-4));
  double log = std::log(config_.prior_median_tokens) + z * config_.prior_spread;
  for (int level = 0; level < kLevels; ++level) {
    const DecayedQuantile* sketch = levels_.peek(key_at(key, level));
    if (sketch == nullptr || sketch->empty()) continue;
    const double own = std::log(std::max(1.0, sketch->quantile(q)));
    log += trust(*sketch) * (own - log);
  }
  return std::clamp(std::exp(log), 1.0, cap_of(max_tokens));
}

OutputLengths::Moments OutputLengths::moments(const LengthKey& key, double cap) const {
  const double median = config_.prior_median_tokens;
  const double spread = config_.prior_spread;
  Moments m{lognormal_moment(median, spread, 1, cap), lognormal_moment(median, spread, 2, cap)};
  for (int level = 0; level < kLevels; ++level) {
    const DecayedQuantile* sketch = levels_.peek(key_at(key, level));
    if (sketch == nullptr || sketch->empty()) continue;
    const double own = trust(*sketch);
    m.first += own * (sketch->expect([&](double v) { return std::min(v, cap); }) - m.first);
    m.second +=
        own * (sketch->expect([&](double v) { return square(std::min(v, cap)); }) - m.second);
  }
  return m;
}

double OutputLengths::trust(const DecayedQuantile& sketch) const {
  return sketch.weight() / (sketch.weight() + config_.shrink_answers);
}

double OutputLengths::mean(const LengthKey& key, std::int64_t max_tokens) const {
  return std::max(1.0, moments(key, cap_of(max_tokens)).first);
}

OutputLengths::Estimate OutputLengths::estimate(const LengthKey& key,
                                                std::int64_t max_tokens) const {
  const Moments m = moments(key, cap_of(max_tokens));
  Estimate e;
  e.mean = std::max(1.0, m.first);
  e.sd = std::sqrt(std::max(0.0, m.second - square(m.first)));
  e.p50 = quantile(key, 0.5, max_tokens);
  e.p90 = quantile(key, 0.9, max_tokens);
  return e;
}

}  // namespace signalbox::perf
