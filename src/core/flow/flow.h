// SPDX-License-Identifier: Apache-2.0
// One request's life, and the only door of the core: events in, actions out. Pure; one thread at a
// time (io/host holds the lock, the simulator has but one thread). Each phase has its own file:
// arrive.cc, place.cc, relay.cc, end.cc, recover.cc, observe.cc, apply.cc, view.cc.
// Keeps INV-1 (one outcome each) and INV-3 (counts return to zero).
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "core/cache/prefix_index.h"
#include "core/flow/config.h"
#include "core/flow/decision_ring.h"
#include "core/flow/view.h"
#include "core/ledger/ledger.h"
#include "core/model/action.h"
#include "core/model/event.h"
#include "core/model/fleet.h"
#include "core/perf/accuracy.h"

namespace signalbox::flow {

using Actions = std::vector<model::OwnedAction>;

class Core;

// The hash under which a LoRA adapter is known in events; never 0.
std::uint64_t lora_hash(std::string_view name);

class Flow {
 public:
  // `seed` draws route weights and near-ties; the same seed and events give the same actions.
  Flow(const Config& config, std::uint64_t seed);
  Flow(const Flow&) = delete;
  Flow& operator=(const Flow&) = delete;
  ~Flow();

  // Replaces configuration and fleet. Requests in flight on an endpoint that is gone run on;
  // waiting requests whose model is gone are concluded. Appends to `out`.
  void apply(const Setup& setup, Instant now, Actions& out);

  // Takes one event; appends what is to be done. An event that the grammar calls stale or duplicate
  // is counted and changes nothing.
  void handle(model::Event&& event, Instant now, Actions& out);

  // When a Tick is due at the latest; kNever when nothing waits for time to pass.
  Instant next_wake() const;

  // What readers see; see view.h. Bounded work: the view of one pool at a time.
  Totals totals() const;
  std::vector<EndpointView> endpoints(model::PoolId pool, Instant now) const;
  PoolView pool(model::PoolId pool) const;
  DispatchView dispatch(model::PoolId pool) const;
  const DecisionRing& decisions() const;
  const ledger::Ledger& ledger() const;
  const perf::Accuracy* accuracy(model::PoolId pool) const;  // null: no such pool
  cache::Stats cache_stats() const;

  // Requests known and not concluded.
  std::size_t in_flight() const;
  // True when every count, claim and reserve of the core is zero (INV-3).
  bool idle() const;

 private:
  std::unique_ptr<Core> core_;
};

}  // namespace signalbox::flow
