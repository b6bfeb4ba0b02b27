// SPDX-License-Identifier: Apache-2.0
// Round robin: the next healthy worker in turn.
// Source: lightseekorg/smg model_gateway/src/policies/round_robin.rs: counter modulo healthy.
#include "sim/peers/rules.h"

namespace signalbox::peers {
namespace {

class RoundRobin : public Rule {
 public:
  Traits traits() const override { return smg_traits(); }
  Choice choose(const Query&, std::span<const Slot> candidates, Fleet, Instant, Rng&) override {
    return {Choice::Kind::Place, candidates[turn_++ % candidates.size()], 0};
  }

 private:
  std::uint64_t turn_ = 0;
};

}  // namespace

std::unique_ptr<Rule> round_robin() { return std::make_unique<RoundRobin>(); }

}  // namespace signalbox::peers
