// SPDX-License-Identifier: Apache-2.0
// What one choice costs each peer: 64 endpoints, prompts of 12,000 tokens in blocks of 512, caches
// filled with more prompts than a processor's caches hold; half of a prompt is shared with others.
// `choose` is the choice alone; `cycle` is choose, sent, first_token and ended.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <deque>
#include <string>
#include <vector>

#include "sim/peers/registry.h"

namespace signalbox::peers {
namespace {

constexpr std::size_t kEndpoints = 64;
constexpr std::size_t kPrompts = 8'192;
constexpr std::size_t kInFlight = 512;
constexpr std::int64_t kTokens = 12'000;
constexpr std::int64_t kBlock = 512;

std::vector<Piece> prompt(Rng& rng) {
  std::vector<Piece> pieces;
  std::uint64_t hash = 1 + rng.below(200);  // a shared beginning
  for (std::int64_t end = 0; end < kTokens;) {
    end = std::min(kTokens, end + kBlock);
    const std::uint64_t content = end <= kTokens / 2 ? 1 : rng.next();
    hash = (hash ^ content) * 0x9E3779B97F4A7C15ull;
    hash = std::max<std::uint64_t>(1, hash ^ (hash >> 31));
    pieces.push_back({hash, end});
  }
  return pieces;
}

class Router {
 public:
  explicit Router(const Peer& peer) : rule_(peer.make()), rng_(1, "bench"), fleet_(kEndpoints) {
    Rng prompts(2, "prompts");
    for (std::size_t i = 0; i < kPrompts; ++i) prompts_.push_back(prompt(prompts));
    for (Slot slot = 0; slot < kEndpoints; ++slot) {
      fleet_[slot].name = slot * 0x9E3779B97F4A7C15ull;
      fleet_[slot].present = true;
      fleet_[slot].profile = {0.01, 2e-5, 1e-10, 16, 8192};
      all_.push_back(slot);
    }
    for (const Slot slot : all_) rule_->joined(slot, fleet_);
    for (const Slot slot : all_) {
      fleet_[slot].looked = true;
      fleet_[slot].state.kv_capacity_tokens = 1'000'000;
      fleet_[slot].state.waiting = static_cast<int>(slot % 3);
      fleet_[slot].state.kv_usage = 0.5;
      rule_->looked(slot, fleet_, now_);
    }
    for (std::size_t i = 0; i < kPrompts; ++i) {
      const Slot slot = static_cast<Slot>(rng_.below(kEndpoints));
      std::vector<truth::CacheEvent> events;
      for (const Piece& piece : prompts_[i]) events.push_back({{}, piece.hash});
      rule_->cache_changed(slot, events);
    }
    for (std::size_t i = 0; i < kPrompts; ++i) step();
  }

  Choice choose(Query& query) {
    chain_ = prompts_[rng_.below(kPrompts)];
    query = {++requests_, requests_ % 1'000, chain_, {&chain_, 1}, kTokens, 0};
    return rule_->choose(query, all_, fleet_, now_, rng_);
  }

  void step() {
    now_ += std::chrono::milliseconds(10);
    Query query;
    const Choice choice = choose(query);
    if (choice.kind != Choice::Kind::Place) return finish();
    rule_->sent(query, choice, fleet_, now_);
    Seen& to = fleet_[choice.slot];
    const std::int64_t uncached = kTokens - choice.cached;
    ++to.in_flight;
    to.prefill_tokens += uncached;
    flights_.push_back({query.request, choice.slot, chain_, kTokens, uncached, 0, now_, kNever});
    if (flights_.size() > kInFlight) finish();
  }

 private:
  void finish() {
    Flight flight = flights_.front();
    flights_.pop_front();
    flight.first = now_ - std::chrono::seconds(1);
    flight.output = 100;
    Seen& at = fleet_[flight.slot];
    at.prefill_tokens -= flight.uncached;
    --at.in_flight;
    rule_->first_token(flight, now_);
    rule_->ended(flight, now_);
  }

  std::unique_ptr<Rule> rule_;
  Rng rng_;
  std::vector<Seen> fleet_;
  std::vector<Slot> all_;
  std::vector<std::vector<Piece>> prompts_;
  std::span<const Piece> chain_;
  std::deque<Flight> flights_;
  std::uint64_t requests_ = 0;
  Instant now_{};
};

void choose(benchmark::State& state, const Peer& peer) {
  Router router(peer);
  Query query;
  for (auto _ : state) benchmark::DoNotOptimize(router.choose(query));
}

void cycle(benchmark::State& state, const Peer& peer) {
  Router router(peer);
  for (auto _ : state) router.step();
}

const bool kRegistered = [] {
  for (const Peer& peer : all()) {
    const std::string name(peer.name);
    benchmark::RegisterBenchmark(("choose/" + name).c_str(), choose, peer);
    benchmark::RegisterBenchmark(("cycle/" + name).c_str(), cycle, peer);
  }
  return true;
}();

}  // namespace
}  // namespace signalbox::peers
