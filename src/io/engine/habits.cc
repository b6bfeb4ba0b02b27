// SPDX-License-Identifier: Apache-2.0
// One function per engine; what is not set is the habit of a plain OpenAI-style server.
#include "io/engine/habits.h"

namespace signalbox::engine {
namespace {

Habits vllm() {
  Habits h;
  h.reports_timings = true;
  h.done_after_error = true;
  h.cache_salt = true;
  // A non-zero priority is an error unless the server schedules by priority: only on request.
  h.priority = true;
  h.priority_sign = -1;
  h.speaks_messages = h.speaks_responses = h.speaks_count_tokens = true;
  h.continuation = Continuation::ByFlags;
  h.rank_header = "X-data-parallel-rank";
  return h;
}

Habits sglang() {
  Habits h;
  h.cache_salt = true;
  h.priority = true;
  h.priority_sign = 1;
  h.speaks_messages = h.speaks_responses = h.speaks_count_tokens = true;
  h.continuation = Continuation::ByFlag;
  h.rank_header = "X-Data-Parallel-Rank";
  return h;
}

Habits llamacpp() {
  Habits h;
  h.ask_stream_always = true;
  h.closes_after_stream = true;
  h.reports_timings = true;
  h.checks_model = false;
  h.usage_counts_first_choice = true;
  h.empty_assistant_breaks = true;
  h.speaks_messages = h.speaks_responses = h.speaks_count_tokens = true;
  h.continuation = Continuation::Implicit;
  h.stripped_header = "X-Conversation-Id";
  return h;
}

Habits trtllm() {
  Habits h;
  h.speaks_responses = true;
  return h;
}

}  // namespace

const Habits& habits(model::EngineKind kind) {
  static const Habits kVllm = vllm();
  static const Habits kSglang = sglang();
  static const Habits kLlamaCpp = llamacpp();
  static const Habits kTrtLlm = trtllm();
  static const Habits kOpenAi;
  switch (kind) {
    case model::EngineKind::Vllm: return kVllm;
    case model::EngineKind::Sglang: return kSglang;
    case model::EngineKind::LlamaCpp: return kLlamaCpp;
    case model::EngineKind::TrtLlm: return kTrtLlm;
    case model::EngineKind::Auto: case model::EngineKind::OpenAi: break;
  }
  return kOpenAi;
}

}  // namespace signalbox::engine
