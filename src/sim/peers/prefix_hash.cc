// SPDX-License-Identifier: Apache-2.0
// Prefix hash with bounded load: a hash of the first 256 tokens on a consistent ring; when that
// worker has more than 1.25 times the average load (the new request counted), the least loaded of
// those within the bound; when all are beyond it, the first worker after all.
// Source: lightseekorg/smg model_gateway/src/policies/prefix_hash.rs: prefix_token_count 256,
// load_factor 1.25, load_ok() and find_worker_with_load_balance().
#include "sim/peers/hash_ring.h"
#include "sim/peers/rules.h"

namespace signalbox::peers {
namespace {

constexpr std::int64_t kPrefixTokens = 256;
constexpr double kLoadFactor = 1.25;

// Content is cut at least every 512 tokens and never shared in part: the piece that holds token 256
// stands for the first 256 tokens.
std::uint64_t key_of(const Query& query) {
  for (const Piece& piece : query.prompt) {
    if (piece.end >= kPrefixTokens) return piece.hash;
  }
  return query.prompt.empty() ? 0 : query.prompt.back().hash;
}

class PrefixHash : public Rule {
 public:
  Traits traits() const override { return smg_traits(); }
  void joined(Slot slot, Fleet fleet) override { ring_.add(slot, fleet[slot].name); }
  void left(Slot slot) override { ring_.remove(slot); }

  Choice choose(const Query& query, std::span<const Slot> candidates, Fleet fleet, Instant,
                Rng&) override {
    std::int64_t total = 0;
    for (const Slot slot : candidates) total += fleet[slot].in_flight;
    const double bound = kLoadFactor * static_cast<double>(total + 1) /
                         static_cast<double>(candidates.size());
    const auto within = [&](Slot slot) { return total == 0 || fleet[slot].in_flight <= bound; };
    const Slot home = ring_.find(key_of(query), candidates);
    if (within(home)) return {Choice::Kind::Place, home, 0};
    // The least loaded of all is within the bound if anybody is.
    const Slot free = least(candidates, [&](Slot slot) { return fleet[slot].in_flight; });
    return {Choice::Kind::Place, within(free) ? free : home, 0};
  }

 private:
  HashRing ring_;
};

}  // namespace

std::unique_ptr<Rule> prefix_hash() { return std::make_unique<PrefixHash>(); }

}  // namespace signalbox::peers
