// SPDX-License-Identifier: Apache-2.0
// Medians per endpoint and of the pool. The pool's median is renewed once per as many observations
// as there are endpoints, so an observation costs O(window) whatever the pool's size.
#include "core/perf/endpoint_factors.h"

#include <algorithm>
#include <cmath>

namespace signalbox::perf {
namespace {

// Mean of the two middle values when their number is even. Reorders `values`.
template <typename T>
double median_of(std::vector<T>& values) {
  const std::size_t half = values.size() / 2;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(half);
  std::nth_element(values.begin(), middle, values.end());
  const double upper = static_cast<double>(*middle);
  if (values.size() % 2 == 1) return upper;
  return (upper + static_cast<double>(*std::max_element(values.begin(), middle))) / 2;
}

// Of a normal sample: its median has π/2 times the variance of its mean, and its deviation is
// 1.4826 times the median distance to the median (Rousseeuw and Croux 1993). Overwrites `values`.
double error_of(std::vector<float>& values, double median) {
  for (float& value : values) value = std::fabs(value - static_cast<float>(median));
  return 1.2533 * 1.4826 * median_of(values) / std::sqrt(static_cast<double>(values.size()));
}

}  // namespace

bool EndpointFactors::enough(const Member& m) const {
  return m.logs.size() >= static_cast<std::size_t>(config_.observations_min);
}

void EndpointFactors::observe(model::EndpointId endpoint, double ratio, Instant now) {
  if (!(ratio > 0) || !std::isfinite(ratio)) return;
  const auto [at, is_new] = index_.try_emplace(endpoint, members_.size());
  if (is_new) members_.emplace_back().id = endpoint;
  Member& m = members_[at->second];
  const double bound = std::log(config_.factor_max) * 2;
  const auto log = static_cast<float>(std::clamp(std::log(ratio), -bound, bound));
  if (m.logs.size() < static_cast<std::size_t>(config_.window_observations)) {
    m.logs.push_back(log);
  } else {
    m.logs[m.next] = log;
    m.next = (m.next + 1) % m.logs.size();
  }
  ++m.seen;
  m.last = std::max(m.last, now);
  std::vector<float> window = m.logs;
  m.median = median_of(window);
  m.error = error_of(window, m.median);
  if (++since_recentred_ >= members_.size()) recentre();
}

void EndpointFactors::recentre() {
  since_recentred_ = 0;
  std::vector<double> medians;
  for (const Member& m : members_) {
    if (enough(m)) medians.push_back(m.median);
  }
  judged_ = static_cast<int>(medians.size());
  pool_median_ = medians.empty() ? 0 : median_of(medians);
}

double EndpointFactors::factor(model::EndpointId endpoint, Instant now) const {
  const auto at = index_.find(endpoint);
  if (at == index_.end() || judged_ < 2) return 1;
  const Member& m = members_[at->second];
  if (!enough(m)) return 1;
  const double n = static_cast<double>(m.logs.size());
  const double trust = n / (n + config_.shrink_observations);
  const double idle = now > m.last ? to_seconds(now - m.last) : 0;
  const double fresh = std::exp2(-idle / to_seconds(config_.relax_half_life));
  const double bound = std::log(config_.factor_max);
  const double difference = m.median - pool_median_;
  const double noise = config_.noise_errors * m.error;
  // The non-negative garrote (Breiman 1995): nothing of what is within the noise, and nearly all of
  // what is far beyond it.
  if (std::fabs(difference) <= noise) return 1;
  const double real = difference - noise * noise / difference;
  return std::exp(std::clamp(trust * fresh * real, -bound, bound));
}

void EndpointFactors::forget(model::EndpointId endpoint) {
  const auto at = index_.find(endpoint);
  if (at == index_.end()) return;
  const std::size_t hole = at->second;
  index_.erase(at);
  if (hole + 1 != members_.size()) {
    members_[hole] = std::move(members_.back());
    index_[members_[hole].id] = hole;
  }
  members_.pop_back();
  recentre();
}

}  // namespace signalbox::perf
