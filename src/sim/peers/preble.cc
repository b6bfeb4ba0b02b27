// SPDX-License-Identifier: Apache-2.0
// Preble (E2). Exploit when the cached part of the prompt is at least as long as the rest: of the
// GPUs with the longest match the one with the least load. Else explore: the least L + M + P.
//   L  load: Σ over requests assigned there in the last 3 minutes of their prefill time (of missed
//      tokens) and decode time (mean answer · the GPU's median time per token)
//   M  eviction: Σ over what the LRU must give up there of its prefill time · the share of the
//      window's requests that use it
//   P  prefill time of what this request misses there
// An exploited GPU with more than 15 times the load of the least loaded hands the request to that.
// Source: ICLR'25, arXiv 2407.00023, sections 3.2 and 4.1; WukLab/preble
// multi_node/global_scheduler_with_time.py: window 3 min, median of 200 times per token from
// 0.15 s, 45 tokens of answer before any is known, 198,516 tokens of cache when the GPU tells none,
// HIGH_LOAD_THRESHOLD 15; blitz-serving/blitz-router docs/preble-design.md (load of a GPU as the
// sum over the requests routed to it).
// Left open: the prefill model in the code is for one GPU of the authors'; the offline profile of
// the engines here is taken. Stealing by prefix is commented out in the code: only the rule above.
#include <algorithm>
#include <deque>
#include <limits>
#include <vector>

#include "sim/peers/flat_map.h"
#include "sim/peers/prefix_lru.h"
#include "sim/peers/rules.h"

namespace signalbox::peers {
namespace {

constexpr Duration kWindow = std::chrono::minutes(3);
constexpr std::size_t kTpotKept = 200;
constexpr double kTpotFirst = 0.15;  // s
constexpr double kAnswerFirst = 45;  // tokens
constexpr std::int64_t kCacheTokens = 198'516;
constexpr double kHighLoad = 15;

class Preble : public Rule {
 public:
  Traits traits() const override {
    Traits traits;
    traits.sees_tokens = true;
    return traits;
  }

  void joined(Slot slot, Fleet fleet) override {
    if (gpus_.size() < fleet.size()) gpus_.resize(fleet.size());
    gpus_[slot] = {};
    gpus_[slot].tpots.push_back(kTpotFirst);
    gpus_[slot].sorted.push_back(kTpotFirst);
    tree_.limit(slot, kCacheTokens);
  }
  void left(Slot slot) override {
    tree_.clear(slot);
    std::erase_if(window_, [&](const Assigned& a) {
      if (a.slot != slot) return false;
      forget(a);
      return true;
    });
  }
  void looked(Slot slot, Fleet fleet, Instant) override {
    const std::int64_t capacity = fleet[slot].state.kv_capacity_tokens;
    if (capacity > 0 && capacity != tree_.limit_of(slot)) tree_.limit(slot, capacity);
  }

  Choice choose(const Query& query, std::span<const Slot> candidates, Fleet fleet, Instant now,
                Rng&) override {
    expire(now);
    cached_.resize(fleet.size());
    tree_.match(query.prompt, cached_);
    std::int64_t longest = 0;
    for (const Slot slot : candidates) longest = std::max(longest, cached_[slot]);
    const Slot chosen = longest >= query.tokens - longest && longest > 0
                            ? exploit(candidates, longest)
                            : explore(query, candidates, fleet);
    return {Choice::Kind::Place, chosen, cached_[chosen]};
  }

  void sent(const Query& query, const Choice& choice, Fleet fleet, Instant now) override {
    Gpu& gpu = gpus_[choice.slot];
    Assigned a;
    a.slot = choice.slot;
    a.until = now + kWindow;
    a.seconds = fleet[choice.slot].profile.prefill_seconds(query.tokens - choice.cached,
                                                           choice.cached) +
                answer_ * gpu.tpot;
    gpu.load += a.seconds;
    a.pieces.reserve(query.prompt.size());
    for (const Piece& piece : query.prompt) uses_.prefetch(piece.hash);
    for (const Piece& piece : query.prompt) {
      a.pieces.push_back(piece.hash);
      ++uses_.at(piece.hash);
    }
    window_.push_back(std::move(a));
    tree_.touch(choice.slot, query.prompt);
  }

  void ended(const Flight& flight, Instant now) override {
    if (flight.output < 2 || flight.first == kNever) return;
    answers_ += (answers_ < 200 ? 1 : 0);
    answer_ += (static_cast<double>(flight.output) - answer_) / answers_;
    Gpu& gpu = gpus_[flight.slot];
    const double tpot = to_seconds(now - flight.first) / static_cast<double>(flight.output - 1);
    const auto place = [&](double value) {
      return std::lower_bound(gpu.sorted.begin(), gpu.sorted.end(), value);
    };
    if (gpu.tpots.size() == kTpotKept) {
      gpu.sorted.erase(place(gpu.tpots.front()));
      gpu.tpots.pop_front();
    }
    gpu.tpots.push_back(tpot);
    gpu.sorted.insert(place(tpot), tpot);
    gpu.tpot = gpu.sorted[gpu.sorted.size() / 2];
  }

 private:
  struct Gpu {
    double load = 0;  // L
    double tpot = kTpotFirst;
    std::deque<double> tpots;    // oldest first
    std::vector<double> sorted;  // the same
  };
  struct Assigned {
    Slot slot = 0;
    Instant until{};
    double seconds = 0;
    std::vector<std::uint64_t> pieces;
  };

  void expire(Instant now) {
    while (!window_.empty() && window_.front().until <= now) {
      forget(window_.front());
      window_.pop_front();
    }
    if (!window_.empty()) return;
    for (Gpu& gpu : gpus_) gpu.load = 0;  // no residue of rounding
  }
  void forget(const Assigned& a) {
    gpus_[a.slot].load -= a.seconds;
    for (const std::uint64_t hash : a.pieces) uses_.prefetch(hash);
    for (const std::uint64_t hash : a.pieces) {
      if (--*uses_.find(hash) == 0) uses_.erase(hash);
    }
  }

  Slot exploit(std::span<const Slot> candidates, std::int64_t longest) const {
    const auto load = [&](Slot slot) { return gpus_[slot].load; };
    const Slot warm = least(candidates, [&](Slot slot) {
      return cached_[slot] == longest ? load(slot) : std::numeric_limits<double>::max();
    });
    const Slot idle = least(candidates, load);
    return load(warm) > kHighLoad * load(idle) && load(idle) > 0 ? idle : warm;
  }

  // M is dear to find and never negative: it is asked only where L + P could still win.
  Slot explore(const Query& query, std::span<const Slot> candidates, Fleet fleet) {
    order_.clear();
    for (const Slot slot : candidates) {
      const double p = fleet[slot].profile.prefill_seconds(query.tokens - cached_[slot],
                                                           cached_[slot]);
      order_.push_back({gpus_[slot].load + p, slot});
    }
    std::sort(order_.begin(), order_.end());
    double best = std::numeric_limits<double>::max();
    Slot chosen = order_.front().second;
    for (const auto& [cost, slot] : order_) {
      if (cost >= best) break;
      const double whole = cost + eviction(query, slot, fleet);
      if (whole < best) best = whole, chosen = slot;
    }
    return chosen;
  }

  double eviction(const Query& query, Slot slot, Fleet fleet) {
    const std::int64_t beyond =
        tree_.tokens(slot) + query.tokens - cached_[slot] - tree_.limit_of(slot);
    if (beyond <= 0 || window_.empty()) return 0;
    const Profile& profile = fleet[slot].profile;
    double seconds = 0;
    tree_.victims(slot, beyond, [&](std::uint64_t hash, std::int64_t tokens) {
      const std::uint32_t* const uses = uses_.find(hash);
      if (uses == nullptr) return;
      const double cost = profile.prefill_seconds(tokens, 0) - profile.a;
      seconds += cost * static_cast<double>(*uses) / static_cast<double>(window_.size());
    });
    return seconds;
  }

  PrefixLru tree_;
  std::vector<Gpu> gpus_;
  std::deque<Assigned> window_;
  FlatMap<std::uint32_t> uses_;  // requests of the window that use the piece
  double answer_ = kAnswerFirst;
  double answers_ = 0;
  std::vector<std::int64_t> cached_;
  std::vector<std::pair<double, Slot>> order_;
};

}  // namespace

std::unique_ptr<Rule> preble() { return std::make_unique<Preble>(); }

}  // namespace signalbox::peers
