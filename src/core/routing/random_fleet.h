// SPDX-License-Identifier: Apache-2.0
// A fleet under random load, driven by the same calls as a real one. For laws and benchmarks.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "core/routing/decide.h"

namespace signalbox::routing {

struct FleetShape {
  int endpoints = 100;
  int accelerators = 2;       // hardware kinds; each runs in a pool of its own
  double speed_noise = 0.1;   // endpoint factors are within 1 ± this
  double stragglers = 0.02;   // share that is three times slower
  double stale = 0.1;         // share whose metrics are old
  double others = 0.3;        // share on which others have requests
  double unavailable = 0.05;  // share that is ejected, asleep or draining
  double loras = 0.1;         // share that has loaded an adapter
  bool uneven_limits = true;
  double small_kv = 0.1;      // share with little KV memory
  double load = 8;            // mean requests in flight per endpoint at the end of warm()
  bool placed = true;         // requests go where decide() says, else anywhere
  bool timed = false;         // requests advance as predicted, else at random
};

inline perf::Coefficients coefficients_of(int accelerator, double factor, bool small_kv) {
  const double speed = factor * (1 + accelerator);
  perf::Coefficients c;
  c.a = 0.004 * speed;
  c.b = 6e-5 * speed;
  c.c = 6e-10 * speed;
  c.d = 0.011 * speed;
  c.e1 = 1.2e-4 * speed;
  c.e2 = accelerator % 2 == 0 ? 1.2e-4 * speed : 3e-5 * speed;
  c.f = 3e-8 * speed;
  c.batch_break = accelerator % 2 == 0 ? 1e9 : 24;
  c.chunk_tokens = accelerator == 2 ? 2048 : 8192;
  c.kv_capacity_tokens = small_kv ? 40'000 : 500'000;
  return c;
}

class RandomFleet {
 public:
  RandomFleet(const FleetShape& shape, std::uint64_t seed, const Config& config = {})
      : shape_(shape), rng_(seed, "random_fleet"), state_(config) {
    for (int a = 0; a < shape.accelerators; ++a) {
      pools_.push_back(model::PoolId(static_cast<std::uint32_t>(a) + 1));
    }
    for (int i = 1; i <= shape.endpoints; ++i) {
      add(model::EndpointId(static_cast<std::uint32_t>(i)));
    }
    for (int i = 0; i < 64; ++i) prefixes_.push_back(draw_prefix());
  }

  // Runs requests through until the load is reached and has turned over twice.
  void warm() {
    const auto wanted = static_cast<std::size_t>(shape_.load * shape_.endpoints);
    for (std::size_t i = 0; i < 3 * wanted; ++i) {
      arrive();
      if (shape_.timed) continue;
      while (live_.size() > wanted) end(rng_.below(live_.size()));
      for (int k = 0; k < 2 && !live_.empty(); ++k) advance(rng_.below(live_.size()));
    }
    for (int i = 1; i <= shape_.endpoints; ++i) {
      look(model::EndpointId(static_cast<std::uint32_t>(i)));
    }
  }

  // Four seconds in flight each, on average, make the load.
  void arrive() {
    now_ += from_seconds(rng_.exponential(4 / (std::max(1.0, shape_.load) * shape_.endpoints)));
    while (!due_.empty() && due_.front().at <= now_) happen();
    const Query q = query();
    model::EndpointId target;
    if (shape_.placed) target = decide(state_, q, now_, rng_).endpoint;
    if (!target) target = any();
    Reason why{};
    if (!state_.feasible(target, q, &why) && why != Reason::Ejected) return;
    const RequestKey key{model::RequestId(++requests_), model::AttemptId(1)};
    const auto cached = q.match == nullptr ? 0 : q.match->cached_tokens(target);
    const Work work{q.prompt_tokens - cached, cached, q.output_mean, rng_.below(4) == 0};
    const Load load = state_.load(target, now_);
    if (!state_.dispatched(target, key, work, now_)) return;
    if (!shape_.timed) return live_.push_back({key, 0, false});
    const double prefill = coefficients_of(static_cast<int>(target.value()) % shape_.accelerators,
                                           1, false)
                               .prefill(static_cast<double>(work.fresh_tokens),
                                        static_cast<double>(cached));
    const double first = load.wait_seconds + prefill + load.step_seconds;
    const double all = rng_.exponential(q.output_mean);
    happens({now_ + from_seconds(first), key, 0, all, load.step_seconds});
  }

  void advance(std::size_t i) {
    Live& live = live_[i];
    if (!live.first) {
      live.first = true;
      state_.first_token(live.key, now_);
    } else {
      live.tokens += 1 + static_cast<std::int64_t>(rng_.below(200));
      state_.progress(live.key, live.tokens, now_);
    }
  }

  void end(std::size_t i) {
    state_.ended(live_[i].key, now_);
    live_[i] = live_.back();
    live_.pop_back();
  }

  void end_all() {
    while (!live_.empty()) end(live_.size() - 1);
    while (!due_.empty()) happen();
  }

  // One look at an engine, with others' requests beside ours.
  void look(model::EndpointId id) {
    if (rng_.chance(shape_.stale)) return;
    const Load load = state_.load(id, now_);
    const bool shared = rng_.chance(shape_.others);
    model::EngineState engine;
    engine.running = load.ours - load.queued + (shared ? static_cast<int>(rng_.below(8)) : 0);
    engine.waiting = load.queued;
    if (shared && rng_.chance(0.3)) engine.waiting += 1 + static_cast<int>(rng_.below(3));
    if (rng_.chance(0.5)) engine.kv_usage = rng_.uniform();
    state_.observed(id, engine, now_);
  }

  // A random request, with a random match. Valid until the next one.
  Query query() {
    Query q;
    q.model = model::ModelId(1);
    q.pools = pools_;
    q.prompt_tokens = static_cast<std::int64_t>(std::min(60'000.0, 20 + rng_.exponential(3'000)));
    q.output_mean = 1 + rng_.exponential(250);
    q.latency_weight = rng_.chance(0.3) ? rng_.uniform(0.1, 16) : 1;
    if (rng_.chance(0.2)) q.seconds_per_usd = rng_.uniform(0, 5'000);
    if (rng_.chance(0.1) && shape_.loras > 0) q.lora = 7;
    draw_match(q.prompt_tokens);
    if (!match_.levels.empty()) q.match = &match_;
    return q;
  }

  // Picks one of the prepared sets of holders for a prompt of this length.
  void draw_match(std::int64_t prompt) {
    match_.prompt_tokens = prompt;
    match_.levels.clear();
    double tokens = 0;
    for (const auto& holders : prefixes_[rng_.below(prefixes_.size())]) {
      tokens += (static_cast<double>(prompt) - tokens) * rng_.uniform();
      match_.levels.insert(match_.levels.begin(), {static_cast<std::int64_t>(tokens), holders});
    }
  }

  State& state() { return state_; }
  Rng& rng() { return rng_; }
  Instant now() const { return now_; }
  void pass(Duration time) { now_ += time; }
  std::size_t live() const { return live_.size(); }  // those that advance() and end() know
  const FleetShape& shape() const { return shape_; }
  const std::vector<model::PoolId>& pools() const { return pools_; }
  model::EndpointId any() {
    return model::EndpointId(1 + static_cast<std::uint32_t>(
                                     rng_.below(static_cast<std::uint64_t>(shape_.endpoints))));
  }

 private:
  struct Live {
    RequestKey key;
    std::int64_t tokens;
    bool first;
  };

  // A timed request: its first token, then every 64 tokens, then its end.
  struct Due {
    Instant at;
    RequestKey key;
    double tokens;
    double all;
    double step;
    bool operator>(const Due& other) const {
      return at != other.at ? at > other.at : key.request > other.key.request;
    }
  };

  void happens(const Due& due) {
    due_.push_back(due);
    std::ranges::push_heap(due_, std::greater<>{});
  }

  void happen() {
    Due due = due_.front();
    std::ranges::pop_heap(due_, std::greater<>{});
    due_.pop_back();
    if (due.tokens == 0) state_.first_token(due.key, due.at);
    if (due.tokens >= due.all && due.tokens > 0) {
      state_.ended(due.key, due.at);
      return;
    }
    if (due.tokens > 0) state_.progress(due.key, static_cast<std::int64_t>(due.tokens), due.at);
    const double more = std::max(1.0, std::min(64.0, due.all - due.tokens));
    due.tokens += more;
    due.at += from_seconds(more * due.step);
    happens(due);
  }

  using Prefix = std::vector<std::vector<model::EndpointId>>;  // holders, shallow to deep

  // Deeper levels are held by fewer; the shallowest may be held by all.
  Prefix draw_prefix() {
    Prefix prefix;
    std::vector<model::EndpointId> from;
    for (int i = 1; i <= shape_.endpoints; ++i) from.emplace_back(static_cast<std::uint32_t>(i));
    const auto levels = rng_.below(5);
    for (std::uint64_t l = 0; l < levels; ++l) {
      const double share = rng_.chance(0.3) && l == 0 ? 1 : rng_.uniform() * rng_.uniform();
      std::vector<model::EndpointId> next;
      for (const auto id : from) {
        if (share == 1 || rng_.chance(share)) next.push_back(id);
      }
      if (next.empty() || (l > 0 && next.size() == from.size())) break;
      prefix.push_back(next);
      from = std::move(next);
    }
    return prefix;
  }

  void add(model::EndpointId id) {
    const int accelerator = static_cast<int>(id.value()) % std::max(1, shape_.accelerators);
    double factor = 1 + shape_.speed_noise * rng_.uniform(-1, 1);
    if (rng_.chance(shape_.stragglers)) factor *= 3;
    EndpointFacts facts;
    facts.pool = pools_[static_cast<std::size_t>(accelerator)];
    facts.model = model::ModelId(1);
    facts.accelerator = static_cast<std::uint64_t>(accelerator);
    if (rng_.chance(shape_.loras)) facts.loras = {7};
    facts.concurrency_limit = shape_.uneven_limits ? 4 + static_cast<int>(rng_.below(60)) : 64;
    facts.usd_per_second = 0.001 * (1 + accelerator);
    facts.reach_seconds = rng_.chance(0.2) ? 0.02 : 0.001;
    facts.coefficients = coefficients_of(accelerator, factor, rng_.chance(shape_.small_kv));
    facts.uncertainty = 0.1;
    state_.add(id, facts);
    if (rng_.chance(shape_.unavailable)) {
      state_.set_availability(id, static_cast<Availability>(1 + rng_.below(3)));
    }
    if (rng_.chance(shape_.others)) look(id);
  }

  FleetShape shape_;
  Rng rng_;
  State state_;
  Instant now_{std::chrono::seconds(1000)};
  std::vector<model::PoolId> pools_;
  std::vector<Live> live_;
  std::vector<Due> due_;
  std::uint64_t requests_ = 0;
  cache::Match match_;
  std::vector<Prefix> prefixes_;
};

}  // namespace signalbox::routing
