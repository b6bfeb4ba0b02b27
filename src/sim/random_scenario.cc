// SPDX-License-Identifier: Apache-2.0
// Draws whole scenarios: small fleets near their capacity, so that queues, caches and limits are
// met often, and every kind of fault.
#include <algorithm>
#include <string>

#include "base/check.h"
#include "base/rng.h"
#include "sim/engine/catalogue.h"
#include "sim/random_load.h"
#include "sim/scenario.h"

namespace signalbox::sim {
namespace {

template <typename T>
T pick(Rng& rng, std::initializer_list<T> choices) {
  return choices.begin()[rng.below(choices.size())];
}

// Rounded to milliseconds, so that a scenario can be written down.
Duration seconds(double s) { return std::chrono::milliseconds(static_cast<std::int64_t>(s * 1e3)); }

Dialect random_dialect(Rng& rng) {
  Dialect d;
  d.usage = !rng.chance(0.1);
  d.asked_to_stream = rng.chance(0.5);
  d.cached = !rng.chance(0.2);
  d.timings = rng.chance(0.3);
  d.incarnation = rng.chance(0.6);
  d.slots = rng.chance(0.7);
  d.kv = rng.chance(0.7);
  d.counters = rng.chance(0.7);
  return d;
}

EngineGroup random_group(Rng& rng, int count) {
  EngineGroup group;
  group.model = rng.chance(0.7) ? "model-a" : "model-b";
  group.count = count;
  group.usd_per_hour = pick(rng, {0.0, 0.5, 2.0, 9.8});
  if (rng.chance(0.3)) {
    const auto profile = truth::find_profile("Llama-3.1-8B", rng.chance(0.5) ? "l40s" : "h100");
    CHECK(profile.has_value());
    group.spec = truth::EngineSpec::from(**profile);
    group.profile = (*profile)->model;
    group.accelerator = (*profile)->gpu;
    group.precision = (*profile)->precision;
    group.tensor_parallel = (*profile)->tensor_parallel;
  } else {
    // One draw a statement: compilers differ in the order in which they evaluate arguments.
    const double a = rng.uniform(4, 15);
    const double b = rng.uniform(0.02, 0.1);
    const double d = rng.uniform(5, 20);
    const double e = rng.uniform(0.05, 0.4);
    group.steps = Steps{a, b, 1e-6, d, e, 4e-5};
    group.spec.table = table_of(*group.steps);
  }
  group.spec.kv_tokens = pick<std::int64_t>(rng, {12'000, 40'000, 200'000});
  group.spec.block_tokens = pick<std::int64_t>(rng, {16, 64});
  group.spec.sequences_max = pick<std::int64_t>(rng, {2, 8, 32, 128});
  group.spec.step_tokens_max = pick<std::int64_t>(rng, {512, 2048, 8192});
  group.concurrency_max = pick(rng, {0, 0, 4, 12, 64});
  group.dispatch = pick(rng, {model::DispatchMode::Immediate, model::DispatchMode::Immediate,
                              model::DispatchMode::Late, model::DispatchMode::Shuttle,
                              model::DispatchMode::Auto});
  group.drain_on_abort = rng.chance(0.2);
  group.adapters_apart = rng.chance(0.2);
  group.dialect = random_dialect(rng);
  return group;
}

// Requests that the fleet completes in a second, roughly.
double capacity(const Scenario& s) {
  double sum = 0;
  for (const EngineGroup& group : s.groups) {
    auto batch = static_cast<double>(std::min<std::int64_t>(16, group.spec.sequences_max));
    if (group.concurrency_max > 0) batch = std::min(batch, 1.0 * group.concurrency_max);
    const double prompt = s.load.system.median * 0.3 + s.load.turn.median * 2;
    const double length = prompt + s.load.answer.median;
    const double step = group.spec.table.decode_ms(batch, length);
    const double prefill = group.spec.table.prefill_ms(prompt, 0);
    sum += group.count * 1e3 / (prefill + s.load.answer.median * 1.3 * step / batch);
  }
  return sum;
}

Load random_load(Rng& rng, std::int64_t requests) {
  Load load;
  load.requests = requests;
  load.system = {pick(rng, {100.0, 800.0, 2500.0}), 0.5, 1, 4000};
  load.turn = {pick(rng, {30.0, 200.0, 600.0}), 1.0, 1, 3000};
  load.answer = {pick(rng, {8.0, 40.0, 90.0}), 0.8, 1, 600};
  load.system_prompts = pick(rng, {1, 8, 60});
  load.zipf = rng.uniform(0.5, 1.5);
  load.follow_up = pick(rng, {0.0, 0.5, 0.8});
  load.think = seconds(rng.uniform(0.05, 4));
  load.leavers = pick(rng, {0.0, 0.05, 0.3});
  load.patience = seconds(rng.uniform(0.01, 3));
  load.plain = pick(rng, {0.0, 0.2, 1.0});
  load.adapters = pick(rng, {0.0, 0.0, 0.3});
  load.tenants = pick(rng, {0, 3});
  load.tenant_cap = pick(rng, {0, 6, 40});
  if (rng.chance(0.25)) load.others_per_second = rng.uniform(0.1, 3);
  return load;
}

Fault random_fault(Rng& rng, double run_seconds, bool may_drain) {
  using Kind = Fault::Kind;
  Fault fault;
  fault.kind = static_cast<Kind>(rng.below(may_drain ? 12 : 11));
  fault.at = Instant{} + seconds(rng.uniform(0, run_seconds));
  fault.lasts = seconds(rng.uniform(0.1, run_seconds / 4));
  fault.engine = rng.below(16);
  fault.amount = rng.uniform(0.1, 1);
  if (fault.kind == Kind::Slow) fault.amount = rng.uniform(1.5, 20);
  if (fault.kind == Kind::Reprice) fault.amount = rng.uniform(0.5, 2);
  if (fault.kind == Kind::Drain) fault.at = Instant{} + seconds(rng.uniform(0.7, 1) * run_seconds);
  return fault;
}

// What some engines have beside the common, drawn apart.
void add_random_features(Rng& rng, EngineGroup& group) {
  truth::EngineSpec& spec = group.spec;
  if (rng.chance(0.15)) {
    spec.ranks = 2 + static_cast<int>(rng.below(3));
    spec.experts_share = pick(rng, {0.0, 0.4});
    group.pins_ranks = rng.chance(0.7);
  }
  if (rng.chance(0.15)) {
    spec.draft_tokens = 1 + static_cast<int>(rng.below(4));
    spec.acceptance = pick(rng, {0.0, 0.7, 1.0});
  }
  if (rng.chance(0.2)) spec.host_kv_tokens = pick<std::int64_t>(rng, {8'000, 400'000});
  if (rng.chance(0.15)) spec.lora_slots = 1;
  if (rng.chance(0.2)) {
    group.start.load = seconds(rng.uniform(0, 5));
    group.start.compile = seconds(rng.uniform(0, 5));
    group.start.wake = seconds(rng.uniform(0, 2));
  }
}

// Prefill and decode apart, of the first group's engines.
void separate(Rng& rng, Scenario& s) {
  EngineGroup decode = s.groups.front();
  s.groups.front().role = model::Role::Prefill;
  s.groups.front().link.gbps = pick(rng, {1.0, 25.0, 400.0});
  decode.role = model::Role::Decode;
  decode.count = 1 + static_cast<int>(rng.below(3));
  s.groups.push_back(decode);
}

// Links and lives: one engine, or a half of all at once, as a zone would.
void add_random_outages(Rng& rng, double run_seconds, Scenario& s) {
  using Kind = Fault::Kind;
  std::size_t engines = 0;
  for (const EngineGroup& group : s.groups) engines += static_cast<std::size_t>(group.count);
  const std::uint64_t outages = pick<std::uint64_t>(rng, {0, 0, 1, 4});
  for (std::uint64_t i = 0; i < outages; ++i) {
    Fault fault;
    fault.kind = pick(rng, {Kind::Sever, Kind::Delay, Kind::Drop, Kind::Sleep, Kind::Reclaim,
                            Kind::Reassign});
    fault.at = Instant{} + seconds(rng.uniform(0, run_seconds));
    fault.lasts = seconds(rng.uniform(0.1, run_seconds / 4));
    fault.engine = rng.below(engines);
    fault.amount = fault.kind == Kind::Delay ? rng.uniform(2, 400) : rng.uniform(0.1, 1);
    const std::size_t hit = rng.chance(0.3) ? (engines + 1) / 2 : 1;
    for (std::size_t k = 0; k < hit; ++k) {
      s.faults.push_back(fault);
      fault.engine = (fault.engine + 1) % engines;
    }
  }
}

flow::Config random_config(Rng& rng) {
  flow::Config config;
  config.admission.queue_requests_max = pick(rng, {0, 4, 40, 4096});
  config.admission.queue_bytes_max.value = pick<std::int64_t>(rng, {100'000, 256 << 20});
  config.admission.queue_wait_max = seconds(pick(rng, {0.5, 5.0, 60.0}));
  config.cache.index_bytes_max.value = pick<std::int64_t>(rng, {1 << 18, 1 << 20, 16 << 20});
  config.decisions_kept = pick<std::int64_t>(rng, {1, 64, 512});
  return config;
}

}  // namespace

Scenario random_scenario(std::uint64_t seed, std::int64_t requests) {
  Rng rng(seed, "scenario");
  Scenario s;
  s.seed = seed;
  s.groups.clear();
  const int groups = pick(rng, {1, 1, 1, 2, 3});
  for (int i = 0; i < groups; ++i) {
    s.groups.push_back(random_group(rng, 1 + static_cast<int>(rng.below(4))));
  }
  Rng features(seed, "features");
  for (EngineGroup& group : s.groups) add_random_features(features, group);
  s.load = random_load(rng, requests);
  const double per_second = capacity(s) * pick(rng, {0.3, 0.6, 0.9, 1.3});
  s.load.sessions_per_second = per_second * (1 - s.load.follow_up);
  add_random_kinds(s.load, per_second, seed);
  s.config = random_config(rng);
  s.threads = pick(rng, {1, 2, 4});
  s.scrape_interval = seconds(pick(rng, {0.2, 1.0, 5.0}));
  s.scrape_lag = seconds(rng.uniform(0, 0.5));
  s.first_token_timeout = seconds(pick(rng, {3.0, 20.0, 60.0}));
  s.idle_timeout = seconds(pick(rng, {2.0, 30.0}));
  const double run_seconds = static_cast<double>(requests) / per_second;
  if (features.chance(0.15)) separate(features, s);
  Rng outages(seed, "outages");
  add_random_outages(outages, run_seconds, s);
  const std::uint64_t faults = pick<std::uint64_t>(rng, {0, 2, 6, 15});
  for (std::uint64_t i = 0; i < faults; ++i) {
    s.faults.push_back(random_fault(rng, run_seconds, i == 0));
  }
  if (rng.chance(0.7)) {
    s.disorder.late = rng.uniform(0, 0.2);
    s.disorder.late_by = seconds(rng.uniform(0.001, 1));
    s.disorder.duplicate = rng.uniform(0, 0.4);
    s.disorder.action_late = rng.uniform(0, 0.3);
    s.disorder.timer_late = seconds(rng.uniform(0.001, 0.05));
  }
  return s;
}

}  // namespace signalbox::sim
