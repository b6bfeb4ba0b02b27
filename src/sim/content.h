// SPDX-License-Identifier: Apache-2.0
// The text of prompts without text: spans of named content. The same spans give the gateway's chain
// and the engine's blocks, so that what the one believes to be shared is shared in the other.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/model/prompt.h"
#include "sim/trace/span.h"

namespace signalbox::sim {

using trace::mixed;
using trace::Span;
using trace::tokens_of;

// Cuts at the end of every span and after each 512 tokens inside one. `domain` separates prompts
// whose KV cache is not interchangeable, such as those of different adapters. Bytes per token vary
// with the content around four.
model::Prompt prompt_of(std::uint64_t domain, std::span<const Span> spans);

// One hash for every whole block of `block_tokens` tokens, chained from the start.
std::vector<std::uint64_t> blocks_of(std::uint64_t domain, std::span<const Span> spans,
                                     std::int64_t block_tokens);

}  // namespace signalbox::sim
