// SPDX-License-Identifier: Apache-2.0
// AnswerWalk: what the stream reader and the reader of whole answers share: usage and timings in
// every dialect, choices, and the truth of an `error` key.
#pragma once

#include <bitset>
#include <cstdint>
#include <string_view>

#include "core/model/event.h"
#include "io/json/cursor.h"
#include "io/json/span.h"

namespace signalbox::json {

// Token counts as the dialects name them; -1: not told.
struct UsageParts {
  std::int64_t prompt = -1;          // prompt_tokens, or input_tokens with cached ones inside
  std::int64_t cached = -1;          // *_tokens_details.cached_tokens
  std::int64_t completion = -1;      // completion_tokens, output_tokens
  std::int64_t cache_read = -1;      // Anthropic: beside input_tokens, not inside
  std::int64_t cache_creation = -1;
};

// llama.cpp `timings` and vLLM `metrics`; negative: not told.
struct TimingParts {
  std::int64_t cache_n = -1;
  std::int64_t prompt_n = -1;
  std::int64_t predicted_n = -1;
  double queue_ms = -1;
  double prefill_ms = -1;
  double decode_ms = -1;
};

// Cached tokens are part of the prompt: beyond it, or of a prompt that is not told, they count as
// not told.
model::Usage to_usage(model::Api api, const UsageParts& usage, const TimingParts& timings);
model::EngineTimings to_timings(const TimingParts& timings);

// Distinct choices, by index. Indices beyond the room are counted each time.
class ChoiceSet {
 public:
  void add(std::int64_t index) {
    if (index >= 0 && index < kRoom) {
      if (seen_[static_cast<std::size_t>(index)]) return;
      seen_[static_cast<std::size_t>(index)] = true;
      while (first_ < kRoom && seen_[static_cast<std::size_t>(first_)]) ++first_;
    }
    ++count_;
  }
  int count() const { return count_; }
  // Whether it has the first `n`; of more than there is room for, whether it has so many.
  bool has_first(int n) const { return n <= kRoom ? first_ >= n : count_ >= n; }

 private:
  static constexpr std::int64_t kRoom = 2048;
  std::bitset<kRoom> seen_;
  int count_ = 0;
  std::int64_t first_ = 0;  // not seen yet
};

// Readers of single values at the cursor. All return false on a syntax fault only; a value of an
// unexpected type, and a count or time beyond all reason, are skipped. `depth` is that of the
// container around the value.
bool read_integer(Cursor& c, int depth, std::int64_t& out);
bool read_milliseconds(Cursor& c, int depth, double& out);
bool read_usage(Cursor& c, int depth, UsageParts& out, bool& present);
bool read_timings(Cursor& c, int depth, TimingParts& out);  // llama.cpp
bool read_metrics(Cursor& c, int depth, TimingParts& out);  // vLLM
// The HTTP status that a payload with an error names as the error's `code`: 400 to 599, a number or
// the text of one. 502: it names none.
int error_status(std::string_view payload);
// A string that is not empty.
bool read_filled(Cursor& c, int depth, bool& filled);
// A value as the official clients test it: not null, false, 0 or "".
bool read_truth(Cursor& c, int depth, bool& truth);

}  // namespace signalbox::json
