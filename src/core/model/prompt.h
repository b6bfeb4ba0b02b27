// SPDX-License-Identifier: Apache-2.0
// A prompt as placement sees it: content hashes at cuts, and sizes. No text.
#pragma once

#include <cstdint>
#include <vector>

namespace signalbox::model {

// Scripts differ in bytes per token by a factor of three; estimates are learnt per script.
enum class Script : std::uint8_t { Latin, Cjk, Other, Code };

// A stretch of prompt content that ends at a cut: a message end, or 2,048 bytes inside a message.
struct PromptBlock {
  std::uint64_t hash = 0;   // XXH3 of the decoded content between the previous cut and this one
  std::uint32_t bytes = 0;  // decoded content bytes in this block
};

// One cut of the chain: equal hash means equal content from the start up to here.
struct PromptNode {
  std::uint64_t hash = 0;  // chained from the seed (isolation domain, model, LoRA, template args)
  std::int64_t bytes = 0;  // content bytes from the start up to this cut
};

struct Prompt {
  std::vector<PromptNode> chain;  // shallow to deep; empty: identity unknown, no prefix affinity
  std::int64_t bytes = 0;         // all content bytes
  Script script = Script::Latin;
};

}  // namespace signalbox::model
