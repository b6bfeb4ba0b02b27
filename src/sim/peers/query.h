// SPDX-License-Identifier: Apache-2.0
// What a rule is asked and what it answers. Plain values.
#pragma once

#include <cstdint>
#include <span>

#include "base/time.h"

namespace signalbox::peers {

// An endpoint as a rule knows it: a small number, given anew after the endpoint has left.
using Slot = std::uint32_t;

// A stretch of a prompt. Equal hash: equal content from the start of the prompt to `end`.
struct Piece {
  std::uint64_t hash = 0;  // never 0
  std::int64_t end = 0;    // tokens from the start
};

// A request. Tokens are exact: peers that estimate them from bytes are given the better figure.
struct Query {
  std::uint64_t request = 0;
  std::uint64_t session = 0;           // routing key that the client sends; 0: none
  std::span<const Piece> prompt;       // shallow to deep; cut at least every 512 tokens
  // The same cuts rounded down to whole KV blocks, by the hashes of the engines' KV events; one
  // chain for each block size in the fleet. Empty for rules that do not listen to KV events.
  std::span<const std::span<const Piece>> blocks;
  std::int64_t tokens = 0;             // of the whole prompt
  std::int64_t output_max = 0;         // max_tokens of the client; 0: not given
};

struct Choice {
  enum class Kind : std::uint8_t {
    Place,
    Wait,    // in the router's own queue, first come first served, until something ends
    Refuse,  // HTTP 429
  };
  Kind kind = Kind::Place;
  Slot slot = 0;
  std::int64_t cached = 0;  // tokens of the prompt that the rule believes to be there
};

// A request on its way, as the rule is told of it.
struct Flight {
  std::uint64_t request = 0;
  Slot slot = 0;
  std::span<const Piece> prompt;
  std::int64_t tokens = 0;    // of the prompt
  std::int64_t uncached = 0;  // of them, as believed when it was sent
  std::int64_t output = 0;    // tokens of the answer so far
  Instant sent{};
  Instant first = kNever;     // when the first token came; kNever: none yet
};

}  // namespace signalbox::peers
