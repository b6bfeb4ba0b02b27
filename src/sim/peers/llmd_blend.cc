// SPDX-License-Identifier: Apache-2.0
// llm-d weighted blend: the highest 3 · prefix share + 2 · queue + 2 · (1 − KV use)
// + 2 · no-hit-LRU; one of equals by chance. Queue: 1 for the shortest waiting queue, 0 for the
// longest, 1 when all are equal. No-hit-LRU: 0.5 for all when anybody has a block; for cold
// requests from 1 for the pod that had a cold one longest ago, or none yet, down to 0. A pod
// without metrics scores 0 for queue and KV use.
// Source: weights from the llm-d blog of 2026-08-17 (prefix 3, queue 2, kv-util 2, no-hit-LRU 2);
// scorers from llm-d/llm-d-router pkg/epp/framework/plugins/scheduling/scorer: queuedepth/queue.go,
// kvcacheutilization/kvcache_utilization.go, nohitlru/no_hit_lru.go; picker/maxscore.
#include <algorithm>
#include <limits>
#include <vector>

#include "sim/peers/llmd_cache.h"
#include "sim/peers/rules.h"

namespace signalbox::peers {
namespace {

constexpr double kPrefix = 3;
constexpr double kQueue = 2;
constexpr double kKv = 2;
constexpr double kNoHit = 2;

class LlmdBlend : public Rule {
 public:
  Traits traits() const override { return llmd_traits(); }
  void joined(Slot slot, Fleet fleet) override {
    cache_.joined(slot);
    if (cold_at_.size() < fleet.size()) cold_at_.resize(fleet.size());
    cold_at_[slot] = 0;
  }
  void left(Slot slot) override { cache_.left(slot); }
  void looked(Slot slot, Fleet fleet, Instant) override { cache_.looked(slot, fleet); }

  Choice choose(const Query& query, std::span<const Slot> candidates, Fleet fleet, Instant,
                Rng& rng) override {
    const std::span<const std::int64_t> cached = cache_.match(query, fleet);
    int shortest = std::numeric_limits<int>::max();
    int longest = 0;
    cold_ = true;
    for (const Slot slot : candidates) {
      cold_ = cold_ && cached[slot] == 0;
      if (!fleet[slot].looked) continue;
      shortest = std::min(shortest, fleet[slot].state.waiting);
      longest = std::max(longest, fleet[slot].state.waiting);
    }
    if (cold_) rank(candidates);
    const Slot chosen = least_drawn(candidates, rng, [&](Slot slot) {
      const Seen& seen = fleet[slot];
      double score = kPrefix * LlmdCache::share(cached[slot], query, seen);
      score += kNoHit * (cold_ ? cold_score_[slot] : 0.5);
      if (seen.looked) {
        const double range = longest - shortest;
        score += kQueue * (range > 0 ? (longest - seen.state.waiting) / range : 1);
        score += kKv * (1 - std::max(0.0, seen.state.kv_usage));
      }
      return -score;
    });
    return {Choice::Kind::Place, chosen, cached[chosen]};
  }

  void sent(const Query& query, const Choice& choice, Fleet, Instant) override {
    cache_.sent(choice.slot, query.prompt);
    if (cold_) cold_at_[choice.slot] = ++colds_;
  }

 private:
  // From 1 for who never had a cold request, by slot, then by how long ago; to 0.
  void rank(std::span<const Slot> candidates) {
    order_.assign(candidates.begin(), candidates.end());
    std::sort(order_.begin(), order_.end(), [&](Slot a, Slot b) {
      return cold_at_[a] != cold_at_[b] ? cold_at_[a] < cold_at_[b] : a < b;
    });
    cold_score_.resize(cold_at_.size());
    const double steps = std::max<double>(1, static_cast<double>(order_.size()) - 1);
    for (std::size_t i = 0; i < order_.size(); ++i) {
      cold_score_[order_[i]] = 1 - static_cast<double>(i) / steps;
    }
  }

  LlmdCache cache_;
  std::vector<std::uint64_t> cold_at_;  // number of the slot's latest cold request; 0: none
  std::vector<double> cold_score_;
  std::vector<Slot> order_;
  std::uint64_t colds_ = 0;
  bool cold_ = false;                   // the request chosen for last
};

}  // namespace

std::unique_ptr<Rule> llmd_blend() { return std::make_unique<LlmdBlend>(); }

}  // namespace signalbox::peers
