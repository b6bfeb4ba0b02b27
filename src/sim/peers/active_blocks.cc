// SPDX-License-Identifier: Apache-2.0
// Counts a piece per slot; the first count adds its tokens, the last takes them back.
#include "sim/peers/active_blocks.h"

#include "base/check.h"

namespace signalbox::peers {

std::uint64_t ActiveBlocks::key(std::uint64_t hash, Slot slot) {
  const std::uint64_t x = (hash ^ (slot + 1) * 0xD1B54A32D192ED03ull) * 0x9E3779B97F4A7C15ull;
  return (x ^ (x >> 32)) | 1;
}

void ActiveBlocks::begin(Slot slot, std::span<const Piece> prompt) {
  if (slot >= tokens_.size()) tokens_.resize(slot + 1);
  for (const Piece& piece : prompt) counts_.prefetch(key(piece.hash, slot));
  std::int64_t from = 0;
  for (const Piece& piece : prompt) {
    if (counts_.at(key(piece.hash, slot))++ == 0) {
      held_.add(piece.hash, slot);
      tokens_[slot] += piece.end - from;
    }
    from = piece.end;
  }
}

void ActiveBlocks::end(Slot slot, std::span<const Piece> prompt) {
  for (const Piece& piece : prompt) counts_.prefetch(key(piece.hash, slot));
  std::int64_t from = 0;
  for (const Piece& piece : prompt) {
    std::uint32_t* const count = counts_.find(key(piece.hash, slot));
    CHECK(count != nullptr);
    if (--*count == 0) {
      counts_.erase(key(piece.hash, slot));
      held_.remove(piece.hash, slot);
      tokens_[slot] -= piece.end - from;
    }
    from = piece.end;
  }
}

}  // namespace signalbox::peers
