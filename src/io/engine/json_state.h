// SPDX-License-Identifier: Apache-2.0
// Load documents in JSON: SGLang /v1/loads and /get_load, llama.cpp /slots, TensorRT-LLM /metrics.
// Pure; any thread. A `rank` >= 0 takes that data-parallel rank alone, negative the whole server.
#pragma once

#include <optional>
#include <string_view>

#include "core/model/engine_state.h"

namespace signalbox::engine {

// None: the body is not such a document.
std::optional<model::EngineState> read_loads(std::string_view body, int rank);
std::optional<model::EngineState> read_slots(std::string_view body);

// Iteration records, oldest first; the newest of each rank counts. Reading removes them from the
// server. `empty` says that there was none: nothing ran since the last reading.
struct Iterations {
  model::EngineState state;
  bool empty = true;
};
std::optional<Iterations> read_iterations(std::string_view body, int rank);

}  // namespace signalbox::engine
