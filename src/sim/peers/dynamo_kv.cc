// SPDX-License-Identifier: Apache-2.0
// NVIDIA Dynamo KV router, in blocks of the engine's size: the least
//   prefill_load_scale · max(0, (active prefill tokens + prompt)/block − overlap · cached blocks)
//   + blocks of all prompts in flight with this one, shared ones once;
// one of equals by chance, or by softmax of −(cost/(max − min))/temperature. Active prefill tokens
// are uncached ones without a first token. A request waits, first come first served, while every
// worker has more than 16 · max_num_batched_tokens of them.
// Source: ai-dynamo/dynamo lib/kv-router/src/scheduling: selector/default.rs (worker_logit,
// softmax_sample_index, minimum_cost_index), config.rs Default (overlap_score_credit 1,
// prefill_load_scale 1, router_temperature 0, use_kv_events, router_track_output_blocks off,
// router_queue_threshold 16, fcfs), queue.rs (all_workers_busy). A broken connection inhibits the
// worker until the next reconciliation (lib/runtime component/client.rs report_instance_down,
// DEFAULT_RECONCILE_INTERVAL 5 s); it leaves with its lease (10 s). Migration limit 0: no retries.
#include <algorithm>
#include <cmath>
#include <vector>

#include "sim/peers/active_blocks.h"
#include "sim/peers/kv_view.h"
#include "sim/peers/rules.h"

namespace signalbox::peers {
namespace {

constexpr double kQueueThreshold = 16;

class DynamoKv : public Rule {
 public:
  DynamoKv(double temperature, double overlap, double prefill_scale)
      : temperature_(temperature), overlap_(overlap), prefill_scale_(prefill_scale) {}

  Traits traits() const override {
    Traits traits;
    traits.cache_events = true;
    traits.sees_tokens = true;
    traits.breaker = {1, std::chrono::seconds(5), 0, true};
    traits.unready_after = std::chrono::seconds(10);
    return traits;
  }
  void left(Slot slot) override { view_.clear(slot); }
  void cache_changed(Slot slot, std::span<const truth::CacheEvent> events) override {
    view_.apply(slot, events);
  }

  Choice choose(const Query& query, std::span<const Slot> candidates, Fleet fleet, Instant,
                Rng& rng) override {
    const bool busy = std::all_of(candidates.begin(), candidates.end(), [&](Slot slot) {
      const auto batched = static_cast<double>(fleet[slot].profile.step_tokens_max);
      return static_cast<double>(fleet[slot].prefill_tokens) > kQueueThreshold * batched;
    });
    if (busy) return {Choice::Kind::Wait, 0, 0};
    cached_.resize(fleet.size());
    shared_.resize(fleet.size());
    view_.match(query, cached_);
    active_.match(query.prompt, shared_);
    const auto cost = [&](Slot slot) {
      const auto block = static_cast<double>(std::max<std::int64_t>(
          1, fleet[slot].profile.block_tokens));
      const auto prefill = static_cast<double>(fleet[slot].prefill_tokens + query.tokens);
      const auto cached = static_cast<double>(cached_[slot]);
      const auto decode =
          static_cast<double>(active_.tokens(slot) + query.tokens - shared_[slot]);
      return prefill_scale_ * std::max(0.0, prefill - overlap_ * cached) / block + decode / block;
    };
    const Slot chosen = temperature_ > 0 ? sample(candidates, rng, cost)
                                         : least_drawn(candidates, rng, cost);
    return {Choice::Kind::Place, chosen, cached_[chosen]};
  }

  void sent(const Query& query, const Choice& choice, Fleet, Instant) override {
    active_.begin(choice.slot, query.prompt);
  }
  void ended(const Flight& flight, Instant) override { active_.end(flight.slot, flight.prompt); }

 private:
  template <typename Cost>
  Slot sample(std::span<const Slot> candidates, Rng& rng, Cost cost) {
    weights_.clear();
    for (const Slot slot : candidates) weights_.push_back(cost(slot));
    const auto [low, high] = std::minmax_element(weights_.begin(), weights_.end());
    const double least_cost = *low;
    const double range = *high - *low;
    double sum = 0;
    for (double& weight : weights_) {
      weight = range > 0 ? std::exp(-(weight - least_cost) / (range * temperature_)) : 1;
      sum += weight;
    }
    double at = rng.uniform() * sum;
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      at -= weights_[i];
      if (at <= 0) return candidates[i];
    }
    return candidates.back();
  }

  double temperature_;
  double overlap_;
  double prefill_scale_;
  KvView view_;
  ActiveBlocks active_;
  std::vector<std::int64_t> cached_;
  std::vector<std::int64_t> shared_;
  std::vector<double> weights_;
};

}  // namespace

std::unique_ptr<Rule> dynamo_kv(double temperature, double overlap, double prefill_scale) {
  return std::make_unique<DynamoKv>(temperature, overlap, prefill_scale);
}

}  // namespace signalbox::peers
