// SPDX-License-Identifier: Apache-2.0
// How long a decision takes, from 10 to 5,000 endpoints. Fleets are warmed by random traffic that
// was placed by decide(); counters: places scored and blocks bounded per decision.
#include <benchmark/benchmark.h>

#include <map>
#include <memory>
#include <utility>

#include "core/routing/random_fleet.h"

namespace signalbox::routing {
namespace {

enum Prefix { kNobody, kFew, kTenth, kAll };

// Requests prepared in advance, so that drawing them costs nothing.
struct Asked {
  std::vector<Query> queries;
  std::vector<cache::Match> matches;
  std::vector<std::vector<model::EndpointId>> holders;
};

Asked prepare(RandomFleet& fleet, Prefix prefix) {
  Asked asked;
  const auto n = static_cast<std::size_t>(fleet.shape().endpoints);
  asked.matches.resize(64);
  asked.holders.resize(64);
  for (std::size_t i = 0; i < 64; ++i) {
    Query q = fleet.query();
    q.lora = 0;
    q.match = nullptr;
    std::size_t wanted = 0;
    if (prefix == kFew) wanted = std::min<std::size_t>(4, n);
    if (prefix == kTenth) wanted = (n + 9) / 10;
    if (prefix == kAll) wanted = n;
    for (std::uint32_t id = 1; id <= n; ++id) {
      const double left = static_cast<double>(wanted - asked.holders[i].size());
      if (fleet.rng().chance(left / static_cast<double>(n - id + 1))) {
        asked.holders[i].push_back(model::EndpointId(id));
      }
    }
    if (wanted > 0) {
      asked.matches[i].prompt_tokens = q.prompt_tokens;
      asked.matches[i].levels = {{q.prompt_tokens * 3 / 4, asked.holders[i]}};
      q.match = &asked.matches[i];
    }
    asked.queries.push_back(q);
  }
  return asked;
}

enum Load { kUniform, kMixed, kUnplaced, kIdle };

FleetShape shape_of(Load load, int endpoints) {
  FleetShape shape;
  shape.endpoints = endpoints;
  shape.accelerators = 3;
  shape.unavailable = 0.02;
  shape.timed = true;
  if (load == kUniform) {
    shape.accelerators = 1;
    shape.speed_noise = shape.stragglers = shape.others = shape.unavailable = shape.loras = 0;
    shape.small_kv = 0;
    shape.uneven_limits = false;
  }
  if (load == kUnplaced) shape.placed = false;
  if (load == kIdle) shape.load = shape.others = 0;
  return shape;
}

// Warmed once; the library calls each benchmark several times.
RandomFleet& fleet_of(Load load, int endpoints) {
  static std::map<std::pair<Load, int>, std::unique_ptr<RandomFleet>> fleets;
  auto& fleet = fleets[{load, endpoints}];
  if (fleet == nullptr) {
    fleet = std::make_unique<RandomFleet>(shape_of(load, endpoints), 1);
    fleet->warm();
  }
  return *fleet;
}

void decide_alone(benchmark::State& bench, Load load, Prefix prefix) {
  RandomFleet& fleet = fleet_of(load, static_cast<int>(bench.range(0)));
  const Asked asked = prepare(fleet, prefix);
  std::size_t i = 0;
  double scored = 0;
  double bounded = 0;
  for (auto _ : bench) {
    const Decision d = decide(fleet.state(), asked.queries[i++ % 64], fleet.now(), fleet.rng());
    scored += d.evaluated;
    bounded += d.bounded;
    benchmark::DoNotOptimize(d.endpoint);
  }
  bench.counters["scored"] = benchmark::Counter(scored, benchmark::Counter::kAvgIterations);
  bench.counters["bounded"] = benchmark::Counter(bounded, benchmark::Counter::kAvgIterations);
}

#define SIZES Arg(10)->Arg(100)->Arg(1000)->Arg(5000)
BENCHMARK_CAPTURE(decide_alone, uniform_nobody, kUniform, kNobody)->SIZES;
BENCHMARK_CAPTURE(decide_alone, mixed_nobody, kMixed, kNobody)->SIZES;
BENCHMARK_CAPTURE(decide_alone, mixed_few, kMixed, kFew)->SIZES;
BENCHMARK_CAPTURE(decide_alone, mixed_tenth, kMixed, kTenth)->SIZES;
BENCHMARK_CAPTURE(decide_alone, mixed_all, kMixed, kAll)->SIZES;
BENCHMARK_CAPTURE(decide_alone, unplaced_nobody, kUnplaced, kNobody)->SIZES;
BENCHMARK_CAPTURE(decide_alone, idle_nobody, kIdle, kNobody)->SIZES;

// One request's life without its decision: dispatch, first token, four digests, end.
void whole_life(benchmark::State& bench) {
  const auto n = static_cast<std::uint64_t>(bench.range(0));
  RandomFleet& fleet = fleet_of(kMixed, static_cast<int>(n));
  State& state = fleet.state();
  Instant now = fleet.now();
  std::vector<RequestKey> ring(4 * n);
  static std::uint64_t request = 1'000'000'000;
  for (auto _ : bench) {
    now += from_seconds(0.5 / static_cast<double>(n));
    RequestKey& key = ring[request % ring.size()];
    state.ended(key, now);
    key = {model::RequestId(++request), model::AttemptId(1)};
    const model::EndpointId target(1 + static_cast<std::uint32_t>(fleet.rng().below(n)));
    state.dispatched(target, key, {1000, 0, 250}, now);
    state.first_token(ring[(request + ring.size() / 2) % ring.size()], now);
    for (std::size_t k = 1; k <= 4; ++k) {
      const RequestKey& moving = ring[(request + k * ring.size() / 10) % ring.size()];
      state.progress(moving, static_cast<std::int64_t>(250 - 50 * k), now);
    }
  }
  for (const RequestKey& key : ring) state.ended(key, now);
}
BENCHMARK(whole_life)->SIZES;

}  // namespace
}  // namespace signalbox::routing

BENCHMARK_MAIN();
