// SPDX-License-Identifier: Apache-2.0
// Names of the closed enums of the fleet.
#include "core/model/fleet.h"

#include "base/check.h"

namespace signalbox::model {

std::string_view name(DispatchMode mode) {
  switch (mode) {
    case DispatchMode::Immediate: return "immediate";
    case DispatchMode::Late: return "late";
    case DispatchMode::Shuttle: return "shuttle";
    case DispatchMode::Auto: return "auto";
  }
  CHECK(false);
}

std::string_view name(EngineKind kind) {
  switch (kind) {
    case EngineKind::Auto: return "auto";
    case EngineKind::Vllm: return "vllm";
    case EngineKind::Sglang: return "sglang";
    case EngineKind::LlamaCpp: return "llamacpp";
    case EngineKind::TrtLlm: return "trtllm";
    case EngineKind::OpenAi: return "openai";
  }
  CHECK(false);
}

}  // namespace signalbox::model
