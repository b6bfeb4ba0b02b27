// SPDX-License-Identifier: Apache-2.0
// Means of a period, their differences from the pool's, and the median of these.
#include "core/perf/endpoint_factors.h"

#include <algorithm>
#include <cmath>

namespace signalbox::perf {
namespace {

// A period with too few observations goes on, but not for ever.
constexpr int kLongestPeriod = 12;

// Mean of the two middle values when their number is even. Reorders `values`, which are not empty.
template <typename Values>
double median_of(Values&& values) {
  const auto size = static_cast<std::ptrdiff_t>(values.size());
  const auto middle = values.begin() + size / 2;
  std::nth_element(values.begin(), middle, values.end());
  const double upper = static_cast<double>(*middle);
  if (size % 2 == 1) return upper;
  return (upper + static_cast<double>(*std::max_element(values.begin(), middle))) / 2;
}

// Of a normal sample: its median has π/2 times the variance of its mean, and its deviation is
// 1.4826 times the median distance to the median (Rousseeuw and Croux 1993). Overwrites `values`.
double error_of(std::span<float> values, double median) {
  for (float& value : values) value = std::fabs(value - static_cast<float>(median));
  return 1.2533 * 1.4826 * median_of(values) / std::sqrt(static_cast<double>(values.size()));
}

}  // namespace

bool EndpointFactors::enough(const Member& m) const {
  return m.periods >= static_cast<std::uint32_t>(std::min(config_.periods_min, config_.periods));
}

void EndpointFactors::observe(model::EndpointId endpoint, double ratio, Instant now) {
  if (!(ratio > 0) || !std::isfinite(ratio)) return;
  const auto [at, is_new] = index_.try_emplace(endpoint, members_.size());
  if (is_new) members_.emplace_back().id = endpoint;
  Member& m = members_[at->second];
  if (seen_ == 0) began_ = now;
  const double bound = std::log(config_.factor_max);
  m.sum += std::clamp(std::log(ratio), -bound, bound);
  if (m.seen++ == 0) ++active_;
  m.last = std::max(m.last, now);
  ++seen_;
  const bool over = now - began_ >= config_.period && seen_ >= active_ * config_.observations_min;
  if (over || now - began_ >= kLongestPeriod * config_.period) end_period();
}

// One that nothing can be compared with leaves no trace.
void EndpointFactors::end_period() {
  std::vector<double> means;
  const auto counts = [&](const Member& m) { return m.seen >= config_.observations_min; };
  for (const Member& m : members_) {
    if (counts(m)) means.push_back(m.sum / m.seen);
  }
  const double pool = means.empty() ? 0 : median_of(means);
  judged_ = 0;
  for (Member& m : members_) {
    if (counts(m) && means.size() >= 2) {
      m.differences[m.periods++ % kPeriodsMax] = static_cast<float>(m.sum / m.seen - pool);
    }
    m.sum = m.seen = 0;
    judged_ += enough(m) ? 1 : 0;
  }
  seen_ = active_ = 0;
}

// The latest differences of an endpoint, in `room`.
std::span<float> EndpointFactors::window(const Member& m, std::span<float> room) const {
  const std::uint32_t count =
      std::min({m.periods, static_cast<std::uint32_t>(config_.periods),
                static_cast<std::uint32_t>(kPeriodsMax)});
  for (std::uint32_t i = 0; i < count; ++i) {
    room[i] = m.differences[(m.periods - 1 - i) % kPeriodsMax];
  }
  return room.first(count);
}

double EndpointFactors::factor(model::EndpointId endpoint, Instant now) const {
  const auto at = index_.find(endpoint);
  if (at == index_.end() || judged_ < 2) return 1;
  const Member& m = members_[at->second];
  if (!enough(m)) return 1;
  std::array<float, kPeriodsMax> room;
  const std::span<float> differences = window(m, room);
  const double difference = median_of(differences);
  const double noise = config_.noise_errors * error_of(differences, difference);
  // The non-negative garrote (Breiman 1995): nothing of what is within the noise, and nearly all of
  // what is far beyond it.
  if (std::fabs(difference) <= noise) return 1;
  const double real = difference - noise * noise / difference;
  const double idle = now > m.last ? to_seconds(now - m.last) : 0;
  const double fresh = std::exp2(-idle / to_seconds(config_.relax_half_life));
  const double bound = std::log(config_.factor_max);
  return std::exp(std::clamp(fresh * real, -bound, bound));
}

void EndpointFactors::forget(model::EndpointId endpoint) {
  const auto at = index_.find(endpoint);
  if (at == index_.end()) return;
  const std::size_t hole = at->second;
  index_.erase(at);
  Member& gone = members_[hole];
  seen_ -= gone.seen;
  active_ -= gone.seen > 0 ? 1 : 0;
  judged_ -= enough(gone) ? 1 : 0;
  if (hole + 1 != members_.size()) {
    members_[hole] = std::move(members_.back());
    index_[members_[hole].id] = hole;
  }
  members_.pop_back();
}

}  // namespace signalbox::perf
