// SPDX-License-Identifier: Apache-2.0
// Power of two choices: two different workers are drawn; the one with fewer requests in flight, the
// first of equals.
// Source: lightseekorg/smg model_gateway/src/policies/power_of_two.rs.
// Left open: SMG compares tokens of a poll every 10 s when both workers have one, else its own
// counts. The counts are the fresher signal and the textbook's (Mitzenmacher 2001): they are taken.
#include "sim/peers/rules.h"

namespace signalbox::peers {
namespace {

class PowerOfTwo : public Rule {
 public:
  Traits traits() const override { return smg_traits(); }
  Choice choose(const Query&, std::span<const Slot> candidates, Fleet fleet, Instant,
                Rng& rng) override {
    const std::size_t n = candidates.size();
    if (n == 1) return {Choice::Kind::Place, candidates[0], 0};
    const std::size_t one = rng.below(n);
    const std::size_t two = (one + 1 + rng.below(n - 1)) % n;
    const bool first = fleet[candidates[one]].in_flight <= fleet[candidates[two]].in_flight;
    return {Choice::Kind::Place, candidates[first ? one : two], 0};
  }
};

}  // namespace

std::unique_ptr<Rule> power_of_two() { return std::make_unique<PowerOfTwo>(); }

}  // namespace signalbox::peers
