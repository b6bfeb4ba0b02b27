// SPDX-License-Identifier: Apache-2.0
// How fast traces are read: text of the real formats' shape, made here. Bytes per second of text.
#include <benchmark/benchmark.h>

#include <string>

#include "base/rng.h"
#include "sim/trace/agentic.h"
#include "sim/trace/mooncake.h"

namespace {

using namespace signalbox;

std::string mooncake(int lines) {
  Rng rng(1, "mooncake");
  std::string text;
  std::uint64_t id = 1;
  for (int i = 0; i < lines; ++i) {
    const std::uint64_t blocks = 1 + rng.below(48);
    text += R"({"timestamp": )" + std::to_string(i * 300) + R"(, "input_length": )" +
            std::to_string(blocks * 512) + R"(, "output_length": 350, "hash_ids": [0)";
    for (std::uint64_t block = 1; block < blocks; ++block) text += ", " + std::to_string(++id);
    text += "]}\n";
  }
  return text;
}

std::string agentic(int sessions, int calls) {
  std::string text =
      "session,subagent,call,t_s,think_s,api_s,input_tokens,output_tokens,prefix_of_call,"
      "shared_blocks\n";
  for (int session = 0; session < sessions; ++session) {
    for (int call = 0; call < calls; ++call) {
      const int tokens = 640 * (call + 1);
      text += std::to_string(session) + ",," + std::to_string(call) + "," +
              std::to_string(call * 20) + ".0,9.0,7.34," + std::to_string(tokens) + ",200," +
              std::to_string(call - 1) + "," + std::to_string(call * 10) + "\n";
    }
  }
  return text;
}

void read_mooncake(benchmark::State& state) {
  const std::string text = mooncake(12'000);
  for (auto _ : state) benchmark::DoNotOptimize(trace::read_mooncake(text));
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(text.size()));
}
BENCHMARK(read_mooncake)->Unit(benchmark::kMillisecond);

void read_agentic(benchmark::State& state) {
  const std::string text = agentic(700, 66);
  const std::string sessions = "session,tool_tokens,system_tokens\n";
  for (auto _ : state) benchmark::DoNotOptimize(trace::read_agentic(text, sessions));
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(text.size()));
}
BENCHMARK(read_agentic)->Unit(benchmark::kMillisecond);

}  // namespace
