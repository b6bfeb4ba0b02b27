// SPDX-License-Identifier: Apache-2.0
// llm-d sticky until saturated: only pods that have at least 0.8 of the prompt's blocks, all when
// none has; all as well when the best of these is more than 18 s slower to its first token than the
// best of the others, at tokens in flight / peak prefill throughput. Then the least uncached tokens
// in flight, this request's included; one of equals by chance. Tokens count until the first token.
// Source: llm-d/llm-d-router filter/prefixcacheaffinity/plugin.go (affinityThreshold 0.80,
// explorationProbability 0, maxTTFTPenaltyMs 18000, peakPrefillThroughput 15928), scorer/tokenload
// (cut at 4,194,304 tokens), dataproducer/inflightload; llm-d blog 2026-08-17.
// Left open: the throughput is to be measured on the deployment (tokens of one unloaded chunk of
// max_num_batched_tokens over its time): it is, as the mean over the fleet, for it is one number.
#include <algorithm>
#include <limits>
#include <vector>

#include "sim/peers/llmd_cache.h"
#include "sim/peers/rules.h"

namespace signalbox::peers {
namespace {

constexpr double kAffinity = 0.80;
constexpr double kPenalty = 18;                 // s
constexpr std::int64_t kTokensMax = 4'194'304;

class LlmdSticky : public Rule {
 public:
  Traits traits() const override { return llmd_traits(); }
  void joined(Slot slot, Fleet fleet) override {
    cache_.joined(slot);
    calibrate(fleet);
  }
  void left(Slot slot) override { cache_.left(slot); }
  void looked(Slot slot, Fleet fleet, Instant) override { cache_.looked(slot, fleet); }

  Choice choose(const Query& query, std::span<const Slot> candidates, Fleet fleet, Instant,
                Rng& rng) override {
    const std::span<const std::int64_t> cached = cache_.match(query, fleet);
    sticky_.clear();
    std::int64_t warm = std::numeric_limits<std::int64_t>::max();  // least tokens in flight
    std::int64_t cold = warm;
    for (const Slot slot : candidates) {
      const bool sticks = LlmdCache::share(cached[slot], query, fleet[slot]) >= kAffinity;
      if (sticks) sticky_.push_back(slot);
      std::int64_t& side = sticks ? warm : cold;
      side = std::min(side, fleet[slot].prefill_tokens);
    }
    const bool others = sticky_.size() < candidates.size();
    if (!sticky_.empty() && others && static_cast<double>(warm - cold) > kPenalty * peak_) {
      sticky_.clear();
    }
    const std::span<const Slot> kept = sticky_.empty() ? candidates : sticky_;
    const Slot chosen = least_drawn(kept, rng, [&](Slot slot) {
      return std::min(kTokensMax, fleet[slot].prefill_tokens + query.tokens - cached[slot]);
    });
    return {Choice::Kind::Place, chosen, cached[chosen]};
  }

  void sent(const Query& query, const Choice& choice, Fleet, Instant) override {
    cache_.sent(choice.slot, query.prompt);
  }

 private:
  void calibrate(Fleet fleet) {
    double sum = 0;
    int count = 0;
    for (const Seen& seen : fleet) {
      if (!seen.present) continue;
      sum += seen.profile.peak_prefill();
      ++count;
    }
    if (count > 0) peak_ = sum / count;
  }

  LlmdCache cache_;
  double peak_ = 15'928;  // tokens/s
  std::vector<Slot> sticky_;
};

}  // namespace

std::unique_ptr<Rule> llmd_sticky() { return std::make_unique<LlmdSticky>(); }

}  // namespace signalbox::peers
