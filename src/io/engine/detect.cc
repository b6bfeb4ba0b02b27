// SPDX-License-Identifier: Apache-2.0
// The first answer decides nearly always: every engine owns its models by name, and llama.cpp signs
// its answers. Only strangers are asked for metrics.
#include "io/engine/detect.h"

#include <utility>

#include "io/engine/json_state.h"
#include "io/engine/page_state.h"

namespace signalbox::engine {
namespace {

using model::EngineKind;

constexpr std::string_view kModels = "/v1/models";
constexpr std::string_view kMetrics = "/metrics";
constexpr std::string_view kProps = "/props";
constexpr std::string_view kServerInfo = "/server_info";
constexpr std::string_view kOldServerInfo = "/get_server_info";

EngineKind by_owner(std::string_view owner) {
  if (owner == "vllm") return EngineKind::Vllm;
  if (owner == "sglang") return EngineKind::Sglang;
  if (owner == "llamacpp") return EngineKind::LlamaCpp;
  if (owner == "tensorrt_llm") return EngineKind::TrtLlm;
  return EngineKind::Auto;
}

bool says_llamacpp(const Answer& answer) { return answer.server.starts_with("llama.cpp"); }

}  // namespace

Detector::Detector(EngineKind declared) : declared_(declared), path_(kModels) {
  if (declared != EngineKind::Auto) result_.kind = declared;
}

void Detector::feed(const Answer& answer) {
  std::string_view asked = std::exchange(path_, {});
  if (asked == kModels) {
    models(answer);
  } else if (asked == kMetrics) {
    metrics(answer);
  } else {
    // The old name is tried only when the new one is not there.
    if (asked == kServerInfo && answer.status == 404) {
      path_ = kOldServerInfo;
      return;
    }
    details(answer);
  }
}

void Detector::models(const Answer& answer) {
  if (answer.status >= 500) {
    result_.ready = false;
    if (says_llamacpp(answer)) settle(EngineKind::LlamaCpp);
    return;
  }
  EngineKind seen = says_llamacpp(answer) ? EngineKind::LlamaCpp : EngineKind::Auto;
  result_.needs_key = answer.status == 401 || answer.status == 403;
  if (answer.status == 200) {
    if (auto list = parse_models(answer.body)) {
      for (const ModelInfo& info : *list) {
        if (seen == EngineKind::Auto) seen = by_owner(info.owned_by);
      }
      result_.facts.models = std::move(*list);
    } else {
      result_.note = std::move(list).error().message;
    }
  }
  if (seen == EngineKind::Auto && declared_ == EngineKind::Auto) {
    path_ = kMetrics;
    return;
  }
  settle(seen);
  ask_details();
}

void Detector::metrics(const Answer& answer) {
  EngineKind seen = EngineKind::OpenAi;
  if (answer.status == 200) {
    seen = page_owner(answer.body);
    if (seen == EngineKind::Auto) {
      seen = read_iterations(answer.body, -1) ? EngineKind::TrtLlm : EngineKind::OpenAi;
    }
  }
  settle(seen);
  ask_details();
}

void Detector::settle(EngineKind seen) {
  if (declared_ == EngineKind::Auto) {
    result_.kind = seen;
  } else if (seen != EngineKind::Auto && seen != declared_ && declared_ != EngineKind::OpenAi) {
    result_.note = "The pool declares engine " + std::string(name(declared_)) +
                   ", but the server answers like " + std::string(name(seen)) +
                   "; correct `engine` or leave it at auto.";
  }
}

void Detector::ask_details() {
  if (result_.kind == EngineKind::LlamaCpp) path_ = kProps;
  if (result_.kind == EngineKind::Sglang) path_ = kServerInfo;
}

void Detector::details(const Answer& answer) {
  if (answer.status >= 500) result_.ready = result_.ready && answer.status != 503;
  if (answer.status != 200) return;
  auto facts = result_.kind == EngineKind::LlamaCpp ? parse_props(answer.body)
                                                    : parse_server_info(answer.body);
  if (facts) merge(result_.facts, std::move(*facts));
}

}  // namespace signalbox::engine
