// SPDX-License-Identifier: Apache-2.0
// SMG cache-aware. Balanced: the worker with the longest match in the router's own tree when it
// covers more than half of the prompt, else the least loaded. Imbalanced (max − min > 32 and max >
// 1.1 · min, in requests over all workers): the least loaded. The chosen worker gets the prompt in
// the tree either way.
// Source: lightseekorg/smg model_gateway/src/policies/cache_aware.rs (select_worker,
// select_worker_with_tokens) and CacheAwareConfig::default(): cache_threshold 0.5,
// balance_abs_threshold 32, balance_rel_threshold 1.1, eviction every 30 s, max_tree_size 10,000,
// pages of 16 tokens.
// Left open: `max_tree_size` is documented as nodes of a tree and counted in tokens; nodes a worker
// are taken, the larger. Of several workers with the longest match the source takes "any"; the
// least loaded is taken. The token tree is the variant, as its constants are those of the default.
#include <algorithm>
#include <limits>
#include <vector>

#include "sim/peers/prefix_lru.h"
#include "sim/peers/rules.h"

namespace signalbox::peers {
namespace {

constexpr double kCacheThreshold = 0.5;
constexpr int kBalanceAbsolute = 32;
constexpr double kBalanceRelative = 1.1;
constexpr Duration kEvictEvery = std::chrono::seconds(30);
constexpr std::size_t kNodesMax = 10'000;
constexpr std::int64_t kPage = 16;

class SmgCacheAware : public Rule {
 public:
  Traits traits() const override { return smg_traits(); }
  void left(Slot slot) override { tree_.clear(slot); }

  Choice choose(const Query& query, std::span<const Slot> candidates, Fleet fleet, Instant now,
                Rng&) override {
    evict(now, fleet);
    const auto load = [&](Slot slot) { return fleet[slot].in_flight; };
    tokens_.resize(fleet.size());
    tree_.match(query.prompt, tokens_);
    int fewest = std::numeric_limits<int>::max();
    int most = 0;
    std::int64_t best = 0;
    for (const Slot slot : candidates) {
      fewest = std::min(fewest, load(slot));
      most = std::max(most, load(slot));
      best = std::max(best, tokens_[slot] / kPage * kPage);
    }
    const bool imbalanced = most - fewest > kBalanceAbsolute && most > kBalanceRelative * fewest;
    const auto whole = static_cast<double>(query.tokens);
    Slot chosen = 0;
    if (!imbalanced && static_cast<double>(best) > kCacheThreshold * whole) {
      chosen = least(candidates, [&](Slot slot) {
        return tokens_[slot] / kPage * kPage == best ? load(slot) : std::numeric_limits<int>::max();
      });
    } else {
      chosen = least(candidates, load);
    }
    return {Choice::Kind::Place, chosen, tokens_[chosen] / kPage * kPage};
  }

  void sent(const Query& query, const Choice& choice, Fleet, Instant) override {
    tree_.touch(choice.slot, query.prompt);
  }

 private:
  void evict(Instant now, Fleet fleet) {
    if (evict_at_ == kNever) evict_at_ = now + kEvictEvery;
    if (now < evict_at_) return;
    evict_at_ = now + kEvictEvery;
    for (Slot slot = 0; slot < fleet.size(); ++slot) tree_.trim(slot, kNodesMax);
  }

  PrefixLru tree_;
  Instant evict_at_ = kNever;  // never: nothing was asked yet
  std::vector<std::int64_t> tokens_;
};

}  // namespace

std::unique_ptr<Rule> smg_cache_aware() { return std::make_unique<SmgCacheAware>(); }

}  // namespace signalbox::peers
