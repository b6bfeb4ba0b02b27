// SPDX-License-Identifier: Apache-2.0
// The door: hands each event to its phase.
#include "core/flow/flow.h"

#include <utility>

#include "core/flow/core.h"

namespace signalbox::flow {

Flow::Flow(const Config& config, std::uint64_t seed)
    : core_(std::make_unique<Core>(config, seed)) {}

Flow::~Flow() = default;

void Flow::apply(const Setup& setup, Instant now, Actions& out) { core_->apply(setup, now, out); }

void Flow::handle(model::Event&& event, Instant now, Actions& out) {
  const auto hand = [&](auto&& specific) {
    core_->on(std::forward<decltype(specific)>(specific), now, out);
  };
  std::visit(hand, std::move(event));
}

Instant Flow::next_wake() const { return core_->next_wake(); }
Totals Flow::totals() const { return core_->totals(); }
std::vector<EndpointView> Flow::endpoints(model::PoolId pool, Instant now) const {
  return core_->endpoints(pool, now);
}
PoolView Flow::pool(model::PoolId pool) const { return core_->pool(pool); }
DispatchView Flow::dispatch(model::PoolId pool) const { return core_->dispatch(pool); }
const DecisionRing& Flow::decisions() const { return core_->decisions(); }
const ledger::Ledger& Flow::ledger() const { return core_->ledger(); }
const perf::Accuracy* Flow::accuracy(model::PoolId pool) const { return core_->accuracy(pool); }
cache::Stats Flow::cache_stats() const { return core_->cache_stats(); }
std::size_t Flow::in_flight() const { return core_->in_flight(); }
bool Flow::idle() const { return core_->idle(); }

Core::Core(const Config& config, std::uint64_t seed)
    : config_(config), route_rng_(seed, "route"), tie_rng_(seed, "tie"),
      fleet_(std::make_shared<model::Fleet>()), queue_(config.admission), index_(config.cache),
      load_(config.routing), ejector_(config.recovery), ledger_(config.ledger),
      lengths_(config.lengths),
      decisions_(static_cast<std::size_t>(config.decisions_kept)), shuttle_(config.dispatch) {}

Request* Core::find(model::RequestId id) {
  const auto found = requests_.find(id);
  return found == requests_.end() ? nullptr : found->second.get();
}

EndpointState* Core::find(model::EndpointId id) {
  const auto found = endpoints_.find(id);
  return found == endpoints_.end() ? nullptr : &found->second;
}

PoolState* Core::pool_of(model::EndpointId id) {
  const EndpointState* endpoint = find(id);
  if (endpoint == nullptr) return nullptr;
  const auto pool = pools_.find(endpoint->declared.pool);
  return pool == pools_.end() ? nullptr : &pool->second;
}

bool Core::legal(model::Verdict verdict) {
  if (verdict == model::Verdict::Legal) return true;
  if (verdict == model::Verdict::Illegal) ++totals_.illegal_events;
  else ++totals_.stale_events;
  return false;
}

}  // namespace signalbox::flow
