// SPDX-License-Identifier: Apache-2.0
// Chains and blocks over spans.
#include "sim/content.h"

#include <algorithm>

namespace signalbox::sim {
namespace {

constexpr std::int64_t kCutTokens = 512;

// 3.2 to 4.8 bytes a token, fixed by the content.
std::int64_t bytes_of(const Span& span, std::int64_t tokens) {
  return tokens * static_cast<std::int64_t>(32 + span.content % 17) / 10;
}

}  // namespace

model::Prompt prompt_of(std::uint64_t domain, std::span<const Span> spans) {
  model::Prompt prompt;
  std::uint64_t hash = mixed(domain, 1);
  for (const Span& span : spans) {
    for (std::int64_t from = 0; from < span.tokens; from += kCutTokens) {
      const std::int64_t to = std::min(span.tokens, from + kCutTokens);
      hash = mixed(mixed(hash, span.content), static_cast<std::uint64_t>(to));
      const std::int64_t bytes = prompt.bytes + bytes_of(span, to);
      prompt.chain.push_back({hash, bytes});
    }
    prompt.bytes += bytes_of(span, span.tokens);
  }
  return prompt;
}

std::vector<std::uint64_t> blocks_of(std::uint64_t domain, std::span<const Span> spans,
                                     std::int64_t block_tokens) {
  std::vector<std::uint64_t> blocks;
  blocks.reserve(static_cast<std::size_t>(tokens_of(spans) / block_tokens));
  std::uint64_t hash = mixed(domain, 2);
  std::int64_t room = block_tokens;  // tokens that the present block still takes
  for (const Span& span : spans) {
    for (std::int64_t from = 0; from < span.tokens;) {
      const std::int64_t take = std::min(room, span.tokens - from);
      // The inner one does not wait for the block before.
      hash = mixed(hash, mixed(span.content, static_cast<std::uint64_t>(from * 65536 + take)));
      from += take;
      room -= take;
      if (room > 0) continue;
      blocks.push_back(hash);
      room = block_tokens;
    }
  }
  return blocks;
}

}  // namespace signalbox::sim
