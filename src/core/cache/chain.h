// SPDX-License-Identifier: Apache-2.0
// The identity of a prompt without a tokenizer: content hashes of blocks, folded into a chain whose
// every node stands for all content up to it. Pure; I/O threads run it outside the core's lock.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/model/ids.h"
#include "core/model/prompt.h"

namespace signalbox::cache {

// What separates caches besides content. Prompts with different seeds share no node.
struct Seed {
  std::uint64_t domain = 0;         // isolation domain (tenant or salt); 0: shared by all
  model::ModelId model{};
  std::uint64_t lora = 0;           // hash of the adapter's name; 0: none
  std::uint64_t template_args = 0;  // hash of chat-template arguments; 0: none

  std::uint64_t hash() const;
};

// Hash of the node that follows `previous` by a block with content hash `block`.
std::uint64_t follow(std::uint64_t previous, std::uint64_t block);

// Replaces `out` by the chain of the prompt: the tools first, then the messages, with cumulative
// bytes. A block of the tools and the same block as a message give different nodes.
void chain(const Seed& seed, std::span<const model::PromptBlock> tools,
           std::span<const model::PromptBlock> messages, std::vector<model::PromptNode>& out);

}  // namespace signalbox::cache
