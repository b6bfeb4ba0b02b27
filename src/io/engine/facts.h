// SPDX-License-Identifier: Apache-2.0
// What an engine is for as long as its process lives: the models it serves and its sizes. Read from
// small JSON documents, rarely. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/model/engine_state.h"

namespace signalbox::engine {

// An entry of GET /v1/models.
struct ModelInfo {
  std::string id;                     // what a request's `model` must say
  std::string root;                   // path or name of the weights; empty: not told
  std::string parent;                 // base model of a LoRA adapter; empty: this is no adapter
  std::string owned_by;               // names the engine: vllm, sglang, llamacpp, tensorrt_llm
  std::vector<std::string> aliases;   // further names of the same model, without `id`
  std::int64_t context_tokens = -1;   // longest prompt + answer; negative: not told
  double params_b = 0;                // parameters in billions; 0: not told
  bool loaded = true;                 // false: would have to be loaded first (llama.cpp's router)

  bool operator==(const ModelInfo&) const = default;
};

struct Facts {
  std::vector<ModelInfo> models;
  std::string version;                   // of the engine's software; empty: not told
  int slots = -1;                        // most requests that run at once, of the whole server
  int ranks = -1;                        // data-parallel ranks behind the address
  std::int64_t kv_capacity_tokens = -1;  // of all ranks together
  std::int64_t context_tokens = -1;

  bool operator==(const Facts&) const = default;
};

// At most this many models are kept from one answer.
inline constexpr std::size_t kModelsMax = 4096;

// GET /v1/models of any dialect. Entries without an id are dropped; no list at all is an error.
Result<std::vector<ModelInfo>> parse_models(std::string_view body);

// GET /props of llama.cpp: slots, context, capacity. Its `is_sleeping` is no obstacle: a request
// wakes the server.
Result<Facts> parse_props(std::string_view body);

// GET /server_info (old: /get_server_info) of SGLang.
Result<Facts> parse_server_info(std::string_view body);

// Fills into `into` what `from` says and keeps the rest.
void merge(Facts& into, Facts from);

// Fills what a look at the metrics left unknown. `rank` >= 0: sizes are shares of one rank.
void complete(model::EngineState& state, const Facts& facts, int rank);

}  // namespace signalbox::engine
