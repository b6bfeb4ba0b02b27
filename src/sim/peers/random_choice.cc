// SPDX-License-Identifier: Apache-2.0
// Random: every healthy worker with the same chance.
// Source: lightseekorg/smg model_gateway/src/policies/random.rs.
#include "sim/peers/rules.h"

namespace signalbox::peers {
namespace {

class RandomChoice : public Rule {
 public:
  Traits traits() const override { return smg_traits(); }
  Choice choose(const Query&, std::span<const Slot> candidates, Fleet, Instant,
                Rng& rng) override {
    return {Choice::Kind::Place, candidates[rng.below(candidates.size())], 0};
  }
};

}  // namespace

std::unique_ptr<Rule> random_choice() { return std::make_unique<RandomChoice>(); }

}  // namespace signalbox::peers
