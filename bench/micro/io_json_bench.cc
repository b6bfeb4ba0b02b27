// SPDX-License-Identifier: Apache-2.0
// Measures the JSON scan of request bodies (small chat, long prompts of words, prompts of escaped
// source code, many messages, tools), the splice, and the reading of stream chunks.
#include <benchmark/benchmark.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/rng.h"
#include "io/json/answer_reader.h"
#include "io/json/chunk_reader.h"
#include "io/json/escape.h"
#include "io/json/request_scan.h"
#include "io/json/splice.h"

namespace signalbox::json {
namespace {

std::string words(std::size_t bytes, std::string_view between) {
  constexpr std::string_view kWords[] = {"the",  "engine", "holds", "a",     "prefix", "of",
                                         "many", "tokens", "while", "other", "turns",  "wait"};
  Rng rng(1, "words");
  std::string out;
  while (out.size() < bytes) {
    out += kWords[rng.below(12)];
    out += rng.below(8) == 0 ? between : " ";
  }
  out.resize(bytes);
  return out;
}

std::string chat(const std::vector<std::string>& contents, std::string_view extra = {}) {
  std::string out = R"({"model":"llama-3.1-70b","messages":[)";
  for (std::size_t i = 0; i < contents.size(); ++i) {
    const char* const role = i == 0 ? "system" : i % 2 == 1 ? "user" : "assistant";
    out += std::string(i == 0 ? "" : ",") + R"({"role":)" + quote(role) + R"(,"content":)" +
           quote(contents[i]) + "}";
  }
  out += R"(],"max_tokens":256,"temperature":0.7,"stream":true)";
  out += extra;
  return out + "}";
}

void run_scan(benchmark::State& state, const std::string& body,
              model::Api api = model::Api::ChatCompletions) {
  RequestScan out;
  const ScanLimits limits;
  for (auto _ : state) {
    const auto result = scan(body, api, limits, out);
    if (!result) state.SkipWithError(result.error().message.c_str());
    benchmark::DoNotOptimize(out.message_blocks.data());
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(body.size()));
}

void scan_small(benchmark::State& state) {
  run_scan(state, chat({words(400, ". "), words(300, ". "), words(150, ". "), words(130, ". ")}));
}
void scan_words(benchmark::State& state) {
  run_scan(state, chat({words(static_cast<std::size_t>(state.range(0)), ", ")}));
}
void scan_code(benchmark::State& state) {
  run_scan(state, chat({words(static_cast<std::size_t>(state.range(0)), ";\n    \"")}));
}
void scan_turns(benchmark::State& state) {
  std::vector<std::string> contents;
  for (int i = 0; i < 200; ++i) contents.push_back(words(2000, ".\n"));
  run_scan(state, chat(contents));
}
void scan_tools(benchmark::State& state) {
  std::string tools = R"(,"tools":[)";
  for (int i = 0; i < 40; ++i) {
    if (i > 0) tools += ',';
    tools += R"({"type":"function","function":{"name":"read_file","description":")" +
             words(300, ". ") +
             R"(","parameters":{"type":"object","properties":{"path":{"type":"string",)"
             R"("description":"Path of the file."},"line":{"type":"integer"}},)"
             R"("required":["path"],"additionalProperties":false}}})";
  }
  run_scan(state, chat({words(2000, ". ")}, tools + "]"));
}

void splice_usual(benchmark::State& state) {
  const std::string body = chat({words(400, ". "), words(300, ". ")});
  RequestScan out;
  if (!scan(body, model::Api::ChatCompletions, {}, out)) state.SkipWithError("bad body");
  std::vector<std::string_view> pieces;
  for (auto _ : state) {
    Splice splice(body, out);
    splice.set_model("meta-llama/Llama-3.1-70B-Instruct");
    splice.include_usage();
    const Edits edits = splice.edits();
    pieces.clear();
    edits.pieces(pieces);
    benchmark::DoNotOptimize(pieces.data());
  }
}

constexpr std::string_view kLlamaChunk =
    R"({"choices":[{"finish_reason":null,"index":0,"delta":{"content":" Red"}}],"created":)"
    R"(1795973682,"id":"chatcmpl-4RC88YbkOJ8X33Nix7t5dBplr0KCY50Y","model":"smollm2-135m",)"
    R"("system_fingerprint":"b0-unknown","object":"chat.completion.chunk"})";
constexpr std::string_view kVllmChunk =
    R"({"id":"chatcmpl-rq-2","object":"chat.completion.chunk","created":1795974137,"model":)"
    R"("tiny","choices":[{"index":0,"delta":{"content":" parameter"},"logprobs":null,)"
    R"("finish_reason":null,"token_ids":null}]})";

void chunk(benchmark::State& state, std::string_view payload, model::Api api) {
  ChunkReader reader(api);
  for (auto _ : state) {
    const Chunk read = reader.read(payload);
    benchmark::DoNotOptimize(read.contents);
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(payload.size()));
}
void chunk_llama(benchmark::State& s) { chunk(s, kLlamaChunk, model::Api::ChatCompletions); }
void chunk_vllm(benchmark::State& s) { chunk(s, kVllmChunk, model::Api::ChatCompletions); }
void chunk_messages(benchmark::State& s) {
  chunk(s, R"({"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}})",
        model::Api::Messages);
}

BENCHMARK(scan_small);
BENCHMARK(scan_words)->Arg(100 << 10)->Arg(400 << 10);
BENCHMARK(scan_code)->Arg(100 << 10)->Arg(400 << 10);
BENCHMARK(scan_turns);
BENCHMARK(scan_tools);
BENCHMARK(splice_usual);
BENCHMARK(chunk_llama);
BENCHMARK(chunk_vllm);
BENCHMARK(chunk_messages);

}  // namespace
}  // namespace signalbox::json

BENCHMARK_MAIN();
