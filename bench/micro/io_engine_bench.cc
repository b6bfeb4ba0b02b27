// SPDX-License-Identifier: Apache-2.0
// Cost of one look at an engine: its metrics page into an EngineState.
#include <benchmark/benchmark.h>

#include <fstream>
#include <iterator>
#include <string>

#include "io/engine/page_state.h"

namespace signalbox::engine {
namespace {

std::string page() {
  std::ifstream in(std::string(SIGNALBOX_SOURCE_DIR) + "/testdata/recorded/vllm-0.32-metrics.txt");
  return {std::istreambuf_iterator<char>(in), {}};
}

void ScanPage(benchmark::State& state) {
  std::string text = page();
  WantedNames names({"vllm:num_requests_running", "vllm:num_requests_waiting",
                     "vllm:kv_cache_usage_perc", "process_start_time_seconds"});
  for (auto _ : state) {
    MetricsScanner scanner(text, names);
    Sample sample;
    double sum = 0;
    while (scanner.next(sample)) sum += sample.value;
    benchmark::DoNotOptimize(sum);
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * text.size()));
}
BENCHMARK(ScanPage);

void ReadVllmPage(benchmark::State& state) {
  std::string text = page();
  for (auto _ : state) {
    benchmark::DoNotOptimize(read_page(model::EngineKind::Vllm, text, -1).state.running);
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * text.size()));
}
BENCHMARK(ReadVllmPage);

}  // namespace
}  // namespace signalbox::engine

BENCHMARK_MAIN();
