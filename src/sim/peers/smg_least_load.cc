// SPDX-License-Identifier: Apache-2.0
// SMG least-load: the least estimated time to drain plus a barrier on KV use,
//   (tokens waiting at the last poll + tokens sent since) / throughput + 0.15 s · k / (1 − k).
// Throughput is what the engine generated per second, 2,000 when it tells none; k is cut at 0.999.
// A poll older than three intervals of 10 s counts as none: then requests in flight · 1,024 tokens
// / the fleet's mean throughput, and, when nobody has one, requests in flight alone.
// Source: lightseekorg/smg model_gateway/src/policies/least_load.rs.
// Left open: the rate of generation is taken between two polls, as SGLang's own gauge averages.
#include <algorithm>
#include <vector>

#include "sim/peers/rules.h"

namespace signalbox::peers {
namespace {

constexpr double kPressure = 0.15;           // s
constexpr double kMeanPrefill = 1024;        // tokens
constexpr double kDefaultThroughput = 2000;  // tokens/s
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
    if (workers_.size() < fleet.size()) workers_.resize(fleet.size());
    workers_[slot] = {};
  }

  void looked(Slot slot, Fleet fleet, Instant now) override {
    Worker& w = workers_[slot];
    const std::int64_t total = fleet[slot].state.generated_tokens_total;
    const double seconds = to_seconds(now - w.polled_at);
    const bool counts = w.generated >= 0 && total >= w.generated && seconds > 0;
    w.throughput = counts ? static_cast<double>(total - w.generated) / seconds : 0;
    w.generated = total;
    w.polled_at = now;
    w.sent_tokens = 0;
  }

  Choice choose(const Query&, std::span<const Slot> candidates, Fleet fleet, Instant now,
                Rng&) override {
    double sum = 0;
    int told = 0;
    bool any = false;
    for (const Slot slot : candidates) {
      if (!fresh(fleet[slot], now)) continue;
      any = true;
      if (workers_[slot].throughput <= 0) continue;
      sum += workers_[slot].throughput;
      ++told;
    }
    const double nominal = told > 0 ? sum / told : kDefaultThroughput;
    const auto score = [&](Slot slot) {
      const Seen& seen = fleet[slot];
      const double requests = seen.in_flight;
      if (!any) return requests;
      if (!fresh(seen, now)) return requests * kMeanPrefill / nominal;
      const Worker& w = workers_[slot];
      const double throughput = w.throughput > 0 ? w.throughput : kDefaultThroughput;
      const double k = std::clamp(seen.state.kv_usage, 0.0, 0.999);
      const auto tokens = static_cast<double>(seen.waiting_tokens + w.sent_tokens);
      return tokens / throughput + kPressure * k / (1 - k);
    };
    return {Choice::Kind::Place, least(candidates, score), 0};
  }

  void sent(const Query& query, const Choice& choice, Fleet, Instant) override {
    workers_[choice.slot].sent_tokens += query.tokens;
  }

 private:
  struct Worker {
    std::int64_t generated = -1;   // at the last poll
    Instant polled_at{};
    double throughput = 0;         // tokens/s; 0: not told
    std::int64_t sent_tokens = 0;  // since the last poll
  };

  static bool fresh(const Seen& seen, Instant now) {
    return seen.looked && now - seen.looked_at <= kStale;
  }

  std::vector<Worker> workers_;
};

}  // namespace

std::unique_ptr<Rule> smg_least_load() { return std::make_unique<SmgLeastLoad>(); }

}  // namespace signalbox::peers
