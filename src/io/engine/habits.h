// SPDX-License-Identifier: Apache-2.0
// What each engine does to one request, as data: whoever sends requests asks here and has no
// branches by engine. Pure; any thread.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/model/fleet.h"

namespace signalbox::engine {

// How an engine may be asked to go on from a partial answer.
enum class Continuation : std::uint8_t {
  No,        // not known to work
  Implicit,  // a trailing assistant message is continued (llama.cpp)
  ByFlags,   // needs continue_final_message:true and add_generation_prompt:false
  ByFlag,    // needs continue_final_message:true
};

struct Habits {
  // Ask for a stream even when the client did not, and assemble the answer: the engine notices a
  // vanished client only while it streams.
  bool ask_stream_always = false;
  // Closes the connection after a stream although it announced keep-alive.
  bool closes_after_stream = false;
  // Understands stream_options.include_usage.
  bool include_usage = true;
  // Puts its own timings into answers (llama.cpp `timings`, vLLM `metrics`).
  bool reports_timings = false;
  // Answers an unknown `model` with 404; otherwise any name is served.
  bool checks_model = true;
  // Usage of a request with n > 1 counts the first choice alone.
  bool usage_counts_first_choice = false;
  // Sends [DONE] after an error event too.
  bool done_after_error = false;
  // An empty assistant message breaks the prompt: never send one.
  bool empty_assistant_breaks = false;
  // Takes a `cache_salt` that keeps prefix caches apart.
  bool cache_salt = false;
  // Takes a `priority`; see priority_sign.
  bool priority = false;
  // The native endpoints besides chat, completions and embeddings.
  bool speaks_messages = false;
  bool speaks_responses = false;
  bool speaks_count_tokens = false;
  // -1: a lower number runs earlier; +1: a higher one. Meaningless without `priority`.
  int priority_sign = -1;
  Continuation continuation = Continuation::No;
  // Header that pins a request to a data-parallel rank; empty: cannot be pinned.
  std::string_view rank_header;
  // Request header that must not reach the engine, besides those that no engine gets; empty: none.
  // llama.cpp keeps generating after a disconnect when X-Conversation-Id is there.
  std::string_view stripped_header;
};

const Habits& habits(model::EngineKind kind);

}  // namespace signalbox::engine
