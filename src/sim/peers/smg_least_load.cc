// SPDX-License-Identifier: Apache-2.0
// SMG least-load: the least estimated time to drain plus a barrier on KV use,
//   (tokens waiting at the last poll + tokens sent since) / throughput + 0.15 s · k / (1 − k).
// Throughput is 2,000 tokens/s for engines that tell no rate; k is cut at 0.999. A poll older than
// three intervals of 10 s counts as none: then requests in flight · 1,024 tokens / the throughput,
// and, when nobody has a fresh one, requests in flight alone.
// Source: lightseekorg/smg model_gateway/src/policies/least_load.rs.
// Left open: whether engines tell a rate (SGLang does, vLLM does not). Here they tell none: a rate
// of generation grows with the batch, and dividing by it was measured to send requests to who is
// busiest, at a fifth more mean end-to-end time.
#include <algorithm>
#include <vector>

#include "sim/peers/rules.h"

namespace signalbox::peers {
namespace {

constexpr double kPressure = 0.15;     // s
constexpr double kMeanPrefill = 1024;  // tokens
constexpr double kThroughput = 2000;   // tokens/s
constexpr Duration kPoll = std::chrono::seconds(10);
constexpr Duration kStale = 3 * kPoll;

class SmgLeastLoad : public Rule {
 public:
  Traits traits() const override {
    Traits traits = smg_traits();
    traits.look_every = kPoll;
    traits.load_details = true;
    return traits;
  }

  void joined(Slot slot, Fleet fleet) override {
    if (sent_tokens_.size() < fleet.size()) sent_tokens_.resize(fleet.size());
    sent_tokens_[slot] = 0;
  }

  void looked(Slot slot, Fleet, Instant) override { sent_tokens_[slot] = 0; }

  Choice choose(const Query&, std::span<const Slot> candidates, Fleet fleet, Instant now,
                Rng&) override {
    const bool any = std::any_of(candidates.begin(), candidates.end(),
                                 [&](Slot slot) { return fresh(fleet[slot], now); });
    const auto score = [&](Slot slot) {
      const Seen& seen = fleet[slot];
      const double requests = seen.in_flight;
      if (!any) return requests;
      if (!fresh(seen, now)) return requests * kMeanPrefill / kThroughput;
      const double k = std::clamp(seen.state.kv_usage, 0.0, 0.999);
      const auto tokens = static_cast<double>(seen.waiting_tokens + sent_tokens_[slot]);
      return tokens / kThroughput + kPressure * k / (1 - k);
    };
    return {Choice::Kind::Place, least(candidates, score), 0};
  }

  void sent(const Query& query, const Choice& choice, Fleet, Instant) override {
    sent_tokens_[choice.slot] += query.tokens;
  }

 private:
  static bool fresh(const Seen& seen, Instant now) {
    return seen.looked && now - seen.looked_at <= kStale;
  }

  std::vector<std::int64_t> sent_tokens_;  // since the last poll
};

}  // namespace

std::unique_ptr<Rule> smg_least_load() { return std::make_unique<SmgLeastLoad>(); }

}  // namespace signalbox::peers
