// SPDX-License-Identifier: Apache-2.0
// Folds blocks into a chain with XXH3.
#include "core/cache/chain.h"

#include <xxhash.h>

namespace signalbox::cache {
namespace {

constexpr std::uint64_t kMessages = 0x6D65737361676573;  // marks the border tools | messages

void append(std::uint64_t& hash, std::int64_t& bytes, std::span<const model::PromptBlock> blocks,
            std::vector<model::PromptNode>& out) {
  for (const model::PromptBlock& block : blocks) {
    hash = follow(hash, block.hash);
    bytes += block.bytes;
    out.push_back({hash, bytes});
  }
}

}  // namespace

std::uint64_t Seed::hash() const {
  const std::uint64_t words[] = {domain, model.value(), lora, template_args};
  return XXH3_64bits(words, sizeof words);
}

std::uint64_t follow(std::uint64_t previous, std::uint64_t block) {
  return XXH3_64bits_withSeed(&block, sizeof block, previous);
}

void chain(const Seed& seed, std::span<const model::PromptBlock> tools,
           std::span<const model::PromptBlock> messages, std::vector<model::PromptNode>& out) {
  out.clear();
  out.reserve(tools.size() + messages.size());
  std::uint64_t hash = seed.hash();
  std::int64_t bytes = 0;
  append(hash, bytes, tools, out);
  hash = follow(hash, kMessages);
  append(hash, bytes, messages, out);
}

}  // namespace signalbox::cache
