// SPDX-License-Identifier: Apache-2.0
// Session hash: the client's routing key on a consistent ring, whatever the load; without a key a
// random worker.
// Source: lightseekorg/smg model_gateway/src/policies/consistent_hashing.rs, X-SMG-Routing-Key.
// Left open: which key clients send. They send one for each conversation, the best for caches.
#include "sim/peers/hash_ring.h"
#include "sim/peers/rules.h"

namespace signalbox::peers {
namespace {

class SessionHash : public Rule {
 public:
  Traits traits() const override { return smg_traits(); }
  void joined(Slot slot, Fleet fleet) override { ring_.add(slot, fleet[slot].name); }
  void left(Slot slot) override { ring_.remove(slot); }

  Choice choose(const Query& query, std::span<const Slot> candidates, Fleet, Instant,
                Rng& rng) override {
    const Slot slot = query.session == 0 ? candidates[rng.below(candidates.size())]
                                         : ring_.find(query.session, candidates);
    return {Choice::Kind::Place, slot, 0};
  }

 private:
  HashRing ring_;
};

}  // namespace

std::unique_ptr<Rule> session_hash() { return std::make_unique<SessionHash>(); }

}  // namespace signalbox::peers
