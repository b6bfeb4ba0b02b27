// SPDX-License-Identifier: Apache-2.0
// read_answer(): the same facts as ChunkReader finds, from a whole answer that is no stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/model/event.h"
#include "io/json/span.h"

namespace signalbox::json {

struct Answer {
  bool valid = false;    // one whole JSON object; half an answer is not
  bool error = false;    // it reports a failure, whatever the HTTP status said
  int choices = 0;       // choices, or 1 for APIs that answer once
  int finished = 0;      // those with a finish reason; embeddings and counts need none
  std::size_t text = 0;  // bytes of text, reasoning and calls in the choices, as they are written
  Span model;            // value of `model`, with quotes
  Span error_value;
  model::Usage usage;
  model::EngineTimings timings;

  // A success has an end for every choice.
  bool complete() const { return valid && !error && finished == choices; }
};

// Choices that were left out of the body.
struct ChoiceCounts {
  std::uint32_t choices = 0;
  std::uint32_t finished = 0;
};

Answer read_answer(model::Api api, std::string_view body, ChoiceCounts left_out = {});

}  // namespace signalbox::json
