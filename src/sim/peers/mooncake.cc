// SPDX-License-Identifier: Apache-2.0
// Mooncake Conductor: the instance with the least estimated time to first token,
// T_queue + T_prefill(length, its own prefix); with an objective, 429 when even that one misses it.
// T_queue: prefill times of what is queued there. T_prefill: a polynomial fitted offline.
// Source: FAST'25, Qin et al., Algorithm 1 (arXiv 2407.00079, section 6.1).
// Left open: the balancing threshold is set by hand, and above it a longer prefix is taken over the
// network first (T_transfer). Engines here hand no KV to each other, so the threshold is never
// reached: to believe in a transfer that does not happen would only mislead. Of the queue's head
// the time that it has had already is not charged. The decoding instance is the same engine and is
// chosen by load: of equals (idle ones without the prefix) the one with the fewest requests; and
// who has no KV memory left for the prompt beside those in flight is passed over while somebody
// has.
#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "sim/peers/kv_view.h"
#include "sim/peers/rules.h"

namespace signalbox::peers {
namespace {

class Mooncake : public Rule {
 public:
  explicit Mooncake(Duration ttft_wanted) : ttft_wanted_(ttft_wanted) {}

  Traits traits() const override {
    Traits traits;
    traits.cache_events = traits.sees_tokens = true;
    return traits;
  }
  void joined(Slot slot, Fleet fleet) override {
    if (instances_.size() < fleet.size()) instances_.resize(fleet.size());
    instances_[slot] = {};
  }
  void left(Slot slot) override { view_.clear(slot); }
  void cache_changed(Slot slot, std::span<const truth::CacheEvent> events) override {
    view_.apply(slot, events);
  }

  Choice choose(const Query& query, std::span<const Slot> candidates, Fleet fleet, Instant now,
                Rng&) override {
    cached_.resize(fleet.size());
    view_.match(query, cached_);
    const auto ttft = [&](Slot slot) {
      return queue_seconds(slot, now) + fleet[slot].profile.prefill_seconds(
                                            query.tokens - cached_[slot], cached_[slot]);
    };
    roomy_.clear();
    for (const Slot slot : candidates) {
      const std::int64_t capacity = fleet[slot].state.kv_capacity_tokens;
      if (capacity <= 0 || instances_[slot].tokens + query.tokens <= capacity) {
        roomy_.push_back(slot);
      }
    }
    const Slot chosen = least(roomy_.empty() ? candidates : roomy_, [&](Slot slot) {
      return std::pair(ttft(slot), fleet[slot].in_flight);
    });
    if (ttft_wanted_ > Duration::zero() && ttft(chosen) > to_seconds(ttft_wanted_)) {
      return {Choice::Kind::Refuse, 0, 0};
    }
    return {Choice::Kind::Place, chosen, cached_[chosen]};
  }

  void sent(const Query& query, const Choice& choice, Fleet fleet, Instant now) override {
    Instance& to = instances_[choice.slot];
    const double seconds =
        fleet[choice.slot].profile.prefill_seconds(query.tokens - choice.cached, choice.cached);
    if (to.queue.empty()) to.head_since = now;
    to.queue.push_back({query.request, seconds});
    to.seconds += seconds;
    to.tokens += query.tokens;
  }
  void first_token(const Flight& flight, Instant now) override { leave(flight, now); }
  void ended(const Flight& flight, Instant now) override {
    leave(flight, now);
    instances_[flight.slot].tokens -= flight.tokens;
  }

 private:
  struct Queued {
    std::uint64_t request = 0;
    double seconds = 0;
  };
  struct Instance {
    std::deque<Queued> queue;  // without a first token, in the order of arrival
    double seconds = 0;        // their sum
    Instant head_since{};
    std::int64_t tokens = 0;   // of all prompts in flight
  };

  double queue_seconds(Slot slot, Instant now) const {
    const Instance& at = instances_[slot];
    if (at.queue.empty()) return 0;
    const double had = std::min(to_seconds(now - at.head_since), at.queue.front().seconds);
    return at.seconds - had;
  }

  void leave(const Flight& flight, Instant now) {
    Instance& at = instances_[flight.slot];
    const auto found = std::find_if(at.queue.begin(), at.queue.end(), [&](const Queued& q) {
      return q.request == flight.request;
    });
    if (found == at.queue.end()) return;
    if (found == at.queue.begin()) at.head_since = now;
    at.seconds -= found->seconds;
    at.queue.erase(found);
    if (at.queue.empty()) at.seconds = 0;  // no residue of rounding
  }

  Duration ttft_wanted_;
  KvView view_;
  std::vector<Instance> instances_;
  std::vector<std::int64_t> cached_;
  std::vector<Slot> roomy_;
};

}  // namespace

std::unique_ptr<Rule> mooncake(Duration ttft_wanted) {
  return std::make_unique<Mooncake>(ttft_wanted);
}

}  // namespace signalbox::peers
