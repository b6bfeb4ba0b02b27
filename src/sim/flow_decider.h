// SPDX-License-Identifier: Apache-2.0
// Our core as a decider: the very code that serves, unchanged.
#pragma once

#include <utility>

#include "sim/decider.h"

namespace signalbox::sim {

class FlowDecider : public Decider {
 public:
  FlowDecider(const flow::Config& config, std::uint64_t seed) : flow_(config, seed) {}

  void apply(const flow::Setup& setup, Instant now, flow::Actions& out) override {
    flow_.apply(setup, now, out);
  }
  void handle(model::Event&& event, Instant now, flow::Actions& out) override {
    flow_.handle(std::move(event), now, out);
  }
  Instant next_wake() const override { return flow_.next_wake(); }
  flow::Totals totals() const override { return flow_.totals(); }
  const flow::Flow* flow() const override { return &flow_; }

 private:
  flow::Flow flow_;
};

}  // namespace signalbox::sim
