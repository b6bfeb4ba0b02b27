// SPDX-License-Identifier: Apache-2.0
// Copies for readers.
#include "core/flow/core.h"

namespace signalbox::flow {

Totals Core::totals() const {
  Totals totals = totals_;
  totals.in_flight = requests_.size();
  totals.waiting = queue_.size();
  totals.waiting_bytes = static_cast<std::uint64_t>(queue_.bytes());
  return totals;
}

std::vector<EndpointView> Core::endpoints(model::PoolId pool, Instant now) const {
  std::vector<EndpointView> views;
  const auto found = pools_.find(pool);
  if (found == pools_.end()) return views;
  for (const model::EndpointId id : found->second.endpoints) {
    const EndpointState& state = endpoints_.at(id);
    EndpointView view;
    view.id = id;
    view.pool = pool;
    view.load = load_.load(id, now);
    view.standing = ejector_.standing(id);
    view.failure_risk = ejector_.failure_risk(id, now);
    view.serves = state.declared.serves;
    view.observed = state.observed;
    view.unreachable = state.unreachable;
    view.no_connection = state.no_connection;
    view.since_observed = now - state.observed_at;
    view.factor = found->second.calibrator->endpoint_factor(id, now);
    view.kv_usage = state.kv_usage;
    view.cached_tokens = index_.held_tokens(id);
    views.push_back(view);
  }
  return views;
}

PoolView Core::pool(model::PoolId pool) const {
  PoolView view;
  view.id = pool;
  const auto found = pools_.find(pool);
  if (found == pools_.end()) return view;
  const perf::Calibrator& calibrator = *found->second.calibrator;
  view.prior_origin = calibrator.prior().origin;
  view.prior_source = calibrator.prior().source;
  view.prior = calibrator.prior().coefficients;
  view.coefficients = calibrator.coefficients();
  view.factors = calibrator.factors();
  view.sigma = calibrator.sigma();
  view.prefill_observations = calibrator.prefills();
  view.decode_observations = calibrator.decodes();
  return view;
}

DispatchView Core::dispatch(model::PoolId pool) const {
  const auto found = pools_.find(pool);
  if (found == pools_.end()) return {};
  const dispatch::Rhythm& rhythm = found->second.rhythm;
  DispatchView view;
  view.mode = found->second.acting;
  view.automatic = found->second.declared.dispatch == model::DispatchMode::Auto;
  if (view.mode != model::DispatchMode::Shuttle) return view;
  view.instances = rhythm.instances;
  view.pass = rhythm.pass;
  view.window = rhythm.pass / std::max(1, rhythm.instances);
  return view;
}

const perf::Accuracy* Core::accuracy(model::PoolId pool) const {
  const auto found = pools_.find(pool);
  return found == pools_.end() ? nullptr : &found->second.accuracy;
}

// INV-3: nothing is in flight, so nothing may be held.
bool Core::idle() const {
  for (const auto& [id, pool] : pools_) {
    if (pool.budget.active() != 0 || pool.budget.retries() != 0) return false;
  }
  return requests_.empty() && load_.idle() && queue_.size() == 0 && caps_.idle();
}

}  // namespace signalbox::flow
