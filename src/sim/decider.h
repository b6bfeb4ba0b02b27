// SPDX-License-Identifier: Apache-2.0
// Who decides in a world: what the world drives, and what a decider can know besides the core's own
// events. Two kinds: our core (flow_decider.h) and other people's rules (peer_decider.h).
#pragma once

#include <span>

#include "base/time.h"
#include "core/flow/flow.h"
#include "sim/engine/cache_event.h"
#include "sim/engine/spec.h"
#include "sim/load.h"

namespace signalbox::sim {

// What a decider asks of the world. Zero: as the scenario says.
struct Senses {
  Duration look_every{};      // between two looks at an engine
  Duration look_lag_max{};    // most that a look is late on the mean
  bool load_details = false;  // looked() before each EndpointObserved
  bool cache_events = false;  // cache_changed()
};

// What some engines tell of their load that the core's EngineState has no field for.
struct LoadDetails {
  std::int64_t waiting_tokens = 0;  // prompt tokens of sequences that wait
};

class Decider {
 public:
  virtual ~Decider() = default;

  // As flow::Flow.
  virtual void apply(const flow::Setup& setup, Instant now, flow::Actions& out) = 0;
  virtual void handle(model::Event&& event, Instant now, flow::Actions& out) = 0;
  virtual Instant next_wake() const = 0;
  virtual flow::Totals totals() const = 0;

  // Our core, whose inside has invariants of its own; null: somebody else's rule.
  virtual const flow::Flow* flow() const { return nullptr; }

  virtual Senses senses() const { return {}; }

  // A request as its client sent it; before its RequestArrived.
  virtual void asked(model::RequestId, const Ask&) {}
  // What an operator measured offline on an engine of that kind; before the apply() that has it.
  virtual void profiled(model::EndpointId, const truth::EngineSpec&) {}
  virtual void looked(model::EndpointId, const LoadDetails&) {}
  // KV events of one engine, in order.
  virtual void cache_changed(model::EndpointId, std::span<const truth::CacheEvent>) {}
};

}  // namespace signalbox::sim
