// SPDX-License-Identifier: Apache-2.0
// The life of an endpoint between good and bad standing.
#include "core/recovery/ejector.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace signalbox::recovery {
namespace {

// 8 ms behind the first failure in a row, 512 ms behind the seventh and all that follow.
constexpr Duration kRest = std::chrono::milliseconds(4);
constexpr int kRestDoublings = 7;

}  // namespace

Health health(model::AttemptResult result) {
  using Result = model::AttemptResult;
  switch (result) {
    case Result::Ok: return Health::Good;
    case Result::ClientError:
    case Result::Throttled:
    case Result::Aborted:
    case Result::Shortage:
    case Result::Overrun: return Health::Neutral;
    case Result::ServerError:
    case Result::ConnectError:
    case Result::Reset:
    case Result::Truncated:
    case Result::StreamError:
    case Result::Unfit:
    case Result::FirstTokenTimeout:
    case Result::IdleTimeout: return Health::Bad;
  }
  CHECK(false);
}

void Ejector::add(model::EndpointId endpoint, model::PoolId pool, double ejected_share) {
  const auto [at, fresh] = endpoints_.try_emplace(endpoint);
  if (!fresh) return;
  at->second.pool = pool;
  Pool& p = pools_[pool];
  p.share = ejected_share;
  ++p.size;
}

void Ejector::remove(model::EndpointId endpoint) {
  const auto at = endpoints_.find(endpoint);
  if (at == endpoints_.end()) return;
  State& s = at->second;
  set_timer(endpoint, s, kNever);
  Pool& pool = pools_[s.pool];
  pool.out.erase(rank(s, endpoint));
  if (--pool.size == 0) pools_.erase(s.pool);
  std::erase(changes_, endpoint);
  endpoints_.erase(at);
}

void Ejector::set_ejected_share(model::PoolId pool, double ejected_share) {
  const auto at = pools_.find(pool);
  if (at != pools_.end()) at->second.share = ejected_share;
}

void Ejector::change(model::EndpointId endpoint, State& s, Standing standing) {
  s.standing = standing;
  if (!std::exchange(s.changed, true)) changes_.push_back(endpoint);
}

void Ejector::set_failing(model::EndpointId endpoint, State& s, bool failing, Instant until) {
  if (!failing && !s.failing) return;
  s.failing = failing;
  set_timer(endpoint, s, until);
  change(endpoint, s, s.standing);
}

void Ejector::set_timer(model::EndpointId endpoint, State& s, Instant when) {
  if (s.timer != kNever) timers_.erase({s.timer, endpoint});
  s.timer = when;
  if (when != kNever) timers_.emplace(when, endpoint);
}

Pass Ejector::dispatched(model::EndpointId endpoint) {
  const auto at = endpoints_.find(endpoint);
  if (at == endpoints_.end()) return {};
  State& s = at->second;
  const bool probe = s.standing == Standing::ProbeReady;
  if (probe) change(endpoint, s, Standing::Probing);
  return {s.period, probe};
}

void Ejector::tried(model::EndpointId endpoint, Instant now) {
  const auto at = endpoints_.find(endpoint);
  if (at != endpoints_.end() && at->second.failures > 0) at->second.last_try = now;
}

void Ejector::first_token(model::EndpointId endpoint, const Pass& pass, Instant now) {
  const auto at = endpoints_.find(endpoint);
  if (at == endpoints_.end()) return;
  at->second.answers = true;
  if (!pass.probe || pass.period != at->second.period) return;
  if (at->second.standing != Standing::Probing) return;
  set_timer(endpoint, at->second, now + config_.ejection);
}

void Ejector::ended(model::EndpointId endpoint, const Pass& pass, Health health, Instant now) {
  const auto at = endpoints_.find(endpoint);
  if (at == endpoints_.end() || pass.period != at->second.period) return;
  State& s = at->second;
  switch (health) {
    case Health::Good: good(endpoint, s, 0); break;
    case Health::Bad: bad(endpoint, s, pass, now); break;
    case Health::Neutral:
      if (!pass.probe || s.standing != Standing::Probing) break;
      set_timer(endpoint, s, kNever);
      change(endpoint, s, Standing::ProbeReady);
      break;
  }
}

void Ejector::good(model::EndpointId endpoint, State& s, int failures) {
  if (s.standing != Standing::In) {
    pools_[s.pool].out.erase(rank(s, endpoint));
    set_timer(endpoint, s, kNever);
    change(endpoint, s, Standing::In);
  }
  set_failing(endpoint, s, false, kNever);
  s.failures = failures;
}

void Ejector::bad(model::EndpointId endpoint, State& s, const Pass& pass, Instant now) {
  Pool& pool = pools_[s.pool];
  if (s.standing != Standing::In) pool.out.erase(rank(s, endpoint));
  if (s.failures == 0 || now - s.last_failure > config_.ejection) {
    s.failing_since = s.last_try = now;
  }
  s.failures = std::min(s.failures + 1, 1'000'000);
  s.last_failure = now;
  s.answers = false;
  if (s.standing == Standing::In) {
    const double most = std::floor(pool.share * pool.size + 1e-9);
    const bool allowed = static_cast<double>(pool.out.size()) + 1 <= most;
    if (s.failures < config_.failures_in_a_row) return;
    if (allowed) eject(endpoint, s, now);
    else set_failing(endpoint, s, true, now + config_.ejection);
    return;
  }
  pool.out.insert(rank(s, endpoint));
  // Sent as the least bad while it was out, the attempt leaves the time of the probe alone.
  if (pass.probe || s.standing == Standing::ProbeReady) eject(endpoint, s, now);
}

void Ejector::eject(model::EndpointId endpoint, State& s, Instant now) {
  pools_[s.pool].out.insert(rank(s, endpoint));
  s.failing = false;
  ++s.period;
  set_timer(endpoint, s, now + config_.ejection);
  change(endpoint, s, Standing::Out);
}

void Ejector::advance(Instant now) {
  while (!timers_.empty() && timers_.begin()->first <= now) {
    const model::EndpointId endpoint = timers_.begin()->second;
    State& s = endpoints_[endpoint];
    set_timer(endpoint, s, kNever);
    if (s.standing == Standing::In) {
      set_failing(endpoint, s, false, kNever);
    } else if (s.standing == Standing::Out) {
      change(endpoint, s, Standing::ProbeReady);
    } else {
      good(endpoint, s, config_.failures_in_a_row - 1);
    }
  }
}

Instant Ejector::next_wake() const { return timers_.empty() ? kNever : timers_.begin()->first; }

Standing Ejector::standing(model::EndpointId endpoint) const {
  const auto at = endpoints_.find(endpoint);
  return at == endpoints_.end() ? Standing::Out : at->second.standing;
}

bool Ejector::accepts(model::EndpointId endpoint) const {
  const Standing s = standing(endpoint);
  return s == Standing::In || s == Standing::ProbeReady;
}

bool Ejector::trusted(model::EndpointId endpoint) const {
  const auto at = endpoints_.find(endpoint);
  return at != endpoints_.end() && accepts(endpoint) && !at->second.failing;
}

double Ejector::failure_risk(model::EndpointId endpoint, Instant now) const {
  const auto at = endpoints_.find(endpoint);
  if (at == endpoints_.end() || at->second.failures == 0) return 0;
  const double age = to_seconds(now - at->second.last_failure) / to_seconds(config_.ejection);
  const double failures = at->second.failures * std::exp2(-std::max(0.0, age));
  return failures / (failures + 1);
}

Instant Ejector::rests_until(model::EndpointId endpoint, Instant now) const {
  const auto at = endpoints_.find(endpoint);
  if (at == endpoints_.end() || at->second.failures == 0 || at->second.answers) return {};
  const State& s = at->second;
  if (now - s.failing_since > config_.ejection) return {};
  return s.last_try + kRest * (1 << std::min(s.failures, kRestDoublings));
}

model::EndpointId Ejector::least_bad(model::PoolId pool,
                                     std::span<const model::EndpointId> excluded) const {
  const auto at = pools_.find(pool);
  if (at == pools_.end()) return {};
  for (const auto& [failures, since, endpoint] : at->second.out) {
    if (std::ranges::find(excluded, endpoint) == excluded.end()) return endpoint;
  }
  return {};
}

std::vector<model::EndpointId> Ejector::take_changes() {
  for (const model::EndpointId endpoint : changes_) endpoints_[endpoint].changed = false;
  return std::exchange(changes_, {});
}

}  // namespace signalbox::recovery
