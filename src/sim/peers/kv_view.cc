// SPDX-License-Identifier: Apache-2.0
// Applies events; looks prompts up.
#include "sim/peers/kv_view.h"

#include <algorithm>

namespace signalbox::peers {

void KvView::apply(Slot slot, std::span<const truth::CacheEvent> events) {
  using Kind = truth::CacheEvent::Kind;
  for (const truth::CacheEvent& event : events) {
    switch (event.kind) {
      case Kind::Stored: blocks_.add(name(event.hash), slot); break;
      case Kind::Removed: blocks_.remove(name(event.hash), slot); break;
      case Kind::Cleared: blocks_.clear(slot); break;
    }
  }
}

void KvView::match(const Query& query, std::span<std::int64_t> tokens) {
  if (query.blocks.size() == 1) return blocks_.match(query.blocks.front(), tokens);
  std::fill(tokens.begin(), tokens.end(), 0);
  scratch_.resize(tokens.size());
  for (const std::span<const Piece> chain : query.blocks) {
    blocks_.match(chain, scratch_);
    for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = std::max(tokens[i], scratch_[i]);
  }
}

}  // namespace signalbox::peers
