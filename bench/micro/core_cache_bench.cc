// SPDX-License-Identifier: Apache-2.0
// Prefix index with a million nodes: lookup and insert of short and long chains, spread over the
// whole index so that caches do not help.
#include <benchmark/benchmark.h>

#include <vector>

#include "base/rng.h"
#include "core/cache/chain.h"
#include "core/cache/prefix_index.h"

namespace signalbox::cache {
namespace {

using model::EndpointId;
using model::ModelId;
using model::PromptNode;
using Nodes = std::vector<PromptNode>;

Query ask(const Nodes& nodes) {
  return {ModelId(1), nodes, nodes.empty() ? 0 : nodes.back().bytes, model::Script::Latin};
}

// A chain that shares its first `shared` nodes with all others of the same length.
Nodes make(std::uint64_t name, std::size_t length, std::size_t shared) {
  Nodes nodes;
  std::uint64_t hash = follow(length, 17);
  for (std::size_t i = 0; i < length; ++i) {
    hash = follow(hash, i < shared ? 1 : name);
    nodes.push_back({hash, static_cast<std::int64_t>(i + 1) * 2048});
  }
  return nodes;
}

struct Filled {
  PrefixIndex index{Config{.index_bytes_max = {1ll << 32}, .chain_nodes_max = 2048}};
  std::vector<Nodes> chains;
};

// A million nodes in chains of this length on 64 endpoints; a fifth of each chain is common.
Filled& filled(std::size_t length) {
  static Filled ten;
  static Filled two_hundred;
  Filled& f = length == 10 ? ten : two_hundred;
  if (!f.chains.empty()) return f;
  for (std::uint32_t e = 1; e <= 64; ++e) f.index.add(EndpointId(e));
  for (std::uint64_t i = 0; f.index.stats().nodes < 1'000'000; ++i) {
    f.chains.push_back(make(i + 2, length, length / 5));
    f.index.insert(EndpointId(static_cast<std::uint32_t>(1 + i % 64)), ask(f.chains.back()),
                   Residence::Held);
  }
  return f;
}

void lookup(benchmark::State& state) {
  Filled& f = filled(static_cast<std::size_t>(state.range(0)));
  Rng rng(1, "bench");
  Match match;
  for (auto _ : state) {
    f.index.lookup(ask(f.chains[rng.below(f.chains.size())]), match);
    benchmark::DoNotOptimize(match.levels.data());
  }
  state.counters["levels"] = static_cast<double>(match.levels.size());
  state.counters["bytes_a_node"] = static_cast<double>(f.index.stats().bytes) /
                                   static_cast<double>(f.index.stats().nodes);
}
BENCHMARK(lookup)->Arg(10)->Arg(200);

// Half of the chain is known, as when a session continues.
void lookup_half(benchmark::State& state) {
  const auto length = static_cast<std::size_t>(state.range(0));
  Filled& f = filled(length);
  Rng rng(1, "bench");
  std::vector<Nodes> asked;
  for (int i = 0; i < 2000; ++i) {
    Nodes nodes = f.chains[rng.below(f.chains.size())];
    for (std::size_t k = length / 2; k < length; ++k) nodes[k].hash = rng.next();
    asked.push_back(std::move(nodes));
  }
  Match match;
  std::size_t i = 0;
  for (auto _ : state) {
    f.index.lookup(ask(asked[i++ % asked.size()]), match);
    benchmark::DoNotOptimize(match.levels.data());
  }
}
BENCHMARK(lookup_half)->Arg(10)->Arg(200);

// A prompt of which only the common beginning is known, then the insert of the rest.
void insert_new(benchmark::State& state) {
  const auto length = static_cast<std::size_t>(state.range(0));
  Filled& f = filled(length);
  std::uint64_t name = 1ull << 40;
  std::vector<Nodes> fresh;
  std::size_t i = 0;
  EndpointId endpoint(1);
  f.index.set_capacity(endpoint, 4'000'000);
  for (auto _ : state) {
    if (i == fresh.size()) {
      state.PauseTiming();
      fresh.clear();
      for (int k = 0; k < 256; ++k) fresh.push_back(make(++name, length, length / 5));
      i = 0;
      state.ResumeTiming();
    }
    f.index.insert(endpoint, ask(fresh[i++]), Residence::Pending);
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) *
                          static_cast<std::int64_t>(length - length / 5));
}
BENCHMARK(insert_new)->Arg(10)->Arg(200);

// The same prompt again: only the order of last use changes.
void insert_known(benchmark::State& state) {
  Filled& f = filled(static_cast<std::size_t>(state.range(0)));
  Rng rng(1, "bench");
  for (auto _ : state) {
    const auto i = rng.below(f.chains.size() / 64) * 64 + 1;  // held by endpoint 2
    f.index.insert(EndpointId(2), ask(f.chains[i]), Residence::Held);
  }
}
BENCHMARK(insert_known)->Arg(10)->Arg(200);

// One prefix of 200 nodes that 5,000 endpoints hold; the match must not walk them.
void lookup_held_by_all(benchmark::State& state) {
  PrefixIndex index{Config{.index_bytes_max = {1ll << 32}, .chain_nodes_max = 2048}};
  const Nodes nodes = make(1, 200, 0);
  for (std::uint32_t e = 1; e <= 5000; ++e) {
    index.add(EndpointId(e));
    index.insert(EndpointId(e), ask(nodes), Residence::Held);
  }
  Match match;
  for (auto _ : state) {
    index.lookup(ask(nodes), match);
    benchmark::DoNotOptimize(match.cached_tokens(EndpointId(4711)));
  }
}
BENCHMARK(lookup_held_by_all);

void join_held_by_all(benchmark::State& state) {
  PrefixIndex index{Config{.index_bytes_max = {1ll << 32}, .chain_nodes_max = 2048}};
  const Nodes nodes = make(1, 200, 0);
  for (std::uint32_t e = 1; e <= 5000; ++e) {
    index.add(EndpointId(e));
    index.insert(EndpointId(e), ask(nodes), Residence::Held);
  }
  for (auto _ : state) {
    state.PauseTiming();
    index.clear(EndpointId(2500));
    state.ResumeTiming();
    index.insert(EndpointId(2500), ask(nodes), Residence::Held);
  }
}
BENCHMARK(join_held_by_all);

void clear_endpoint(benchmark::State& state) {
  for (auto _ : state) {
    state.PauseTiming();
    PrefixIndex index{Config{.index_bytes_max = {1ll << 32}, .chain_nodes_max = 2048}};
    index.add(EndpointId(1));
    for (std::uint64_t i = 0; i < 100; ++i) {
      index.insert(EndpointId(1), ask(make(i, 100, 0)), Residence::Held);
    }
    state.ResumeTiming();
    index.clear(EndpointId(1));
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * 10'000);
}
BENCHMARK(clear_endpoint)->Iterations(20);

void fold_chain(benchmark::State& state) {
  std::vector<model::PromptBlock> blocks(200, {1, 2048});
  Nodes out;
  for (auto _ : state) {
    chain(Seed{}, {}, blocks, out);
    benchmark::DoNotOptimize(out.data());
  }
}
BENCHMARK(fold_chain);

}  // namespace
}  // namespace signalbox::cache

BENCHMARK_MAIN();
