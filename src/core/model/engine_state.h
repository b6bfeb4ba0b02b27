// SPDX-License-Identifier: Apache-2.0
// What one look at an engine told us, whatever dialect it speaks. Negative numbers mean that the
// engine does not say.
#pragma once

#include <cstdint>

namespace signalbox::model {

// Sum and count of a histogram since the engine's start; differences of two looks are evidence.
struct SumCount {
  double sum = -1;
  std::int64_t count = -1;
};

struct EngineState {
  int running = -1;                       // requests that hold a slot
  int waiting = -1;                       // requests queued inside the engine
  int slots = -1;                         // most requests that run at once
  double kv_usage = -1;                   // 0..1
  std::int64_t kv_capacity_tokens = -1;   // tokens of KV cache in all
  std::int64_t context_tokens = -1;       // longest prompt + answer
  std::int64_t prompt_tokens_total = -1;
  std::int64_t cached_tokens_total = -1;  // prompt tokens found in the prefix cache
  std::int64_t generated_tokens_total = -1;
  std::int64_t preemptions_total = -1;
  SumCount prefill_seconds;               // per finished request
  SumCount prefill_tokens;                // computed (uncached) prompt tokens per request
  SumCount queue_seconds;
  SumCount token_seconds;                 // from one output token to the next
  std::uint64_t incarnation = 0;          // changes when the process restarts; 0: not told
  bool asleep = false;                    // accepts requests but would not serve them
};

}  // namespace signalbox::model
