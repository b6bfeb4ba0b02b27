// SPDX-License-Identifier: Apache-2.0
// LMetric: the least (queued prefill tokens + uncached tokens of this prompt) · (requests there,
// running and queued, + 1); the first of equals.
// Source: OSDI'26, arXiv 2603.15202: argmin Ptok · BS; blitz-serving/blitz-router
// docs/dsl/policies.md `lmetric-q`: prefill_tokens(req, sctx) · (sctx.bs + 1), with the engine's
// cache told by its own events (docs/dsl/schema.md).
// Left open: engines tell batch and queue with every step, so the router's own counts are the same
// and never late: they are taken. The hotspot detector of the paper (2·|M| wins in a row) never
// fired on the paper's traces and is not defined in the code: none.
#include <vector>

#include "sim/peers/kv_view.h"
#include "sim/peers/rules.h"

namespace signalbox::peers {
namespace {

class Lmetric : public Rule {
 public:
  Traits traits() const override {
    Traits traits;
    traits.cache_events = traits.sees_tokens = true;
    return traits;
  }
  void left(Slot slot) override { view_.clear(slot); }
  void cache_changed(Slot slot, std::span<const truth::CacheEvent> events) override {
    view_.apply(slot, events);
  }

  Choice choose(const Query& query, std::span<const Slot> candidates, Fleet fleet, Instant,
                Rng&) override {
    cached_.resize(fleet.size());
    view_.match(query, cached_);
    const Slot chosen = least(candidates, [&](Slot slot) {
      const std::int64_t tokens = fleet[slot].prefill_tokens + query.tokens - cached_[slot];
      return tokens * (fleet[slot].in_flight + 1);
    });
    return {Choice::Kind::Place, chosen, cached_[chosen]};
  }

 private:
  KvView view_;
  std::vector<std::int64_t> cached_;
};

}  // namespace

std::unique_ptr<Rule> lmetric() { return std::make_unique<Lmetric>(); }

}  // namespace signalbox::peers
