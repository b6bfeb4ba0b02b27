// SPDX-License-Identifier: Apache-2.0
// Linked lists in one array. Prompts are touched from their end, so that a piece is always more
// recent than what stands on it.
#include "sim/peers/prefix_lru.h"

namespace signalbox::peers {

std::uint64_t PrefixLru::key(std::uint64_t hash, Slot slot) {
  const std::uint64_t x = (hash ^ (slot + 1) * 0xD1B54A32D192ED03ull) * 0x9E3779B97F4A7C15ull;
  return (x ^ (x >> 32)) | 1;
}

PrefixLru::List& PrefixLru::list(Slot slot) {
  if (slot >= lists_.size()) lists_.resize(slot + 1);
  return lists_[slot];
}

void PrefixLru::limit(Slot slot, std::int64_t tokens) {
  List& l = list(slot);
  l.limit = tokens;
  while (l.tokens > l.limit) evict(slot, l);
}

void PrefixLru::trim(Slot slot, std::size_t pieces) {
  List& l = list(slot);
  while (l.pieces > pieces) evict(slot, l);
}

void PrefixLru::touch(Slot slot, std::span<const Piece> prompt) {
  List& l = list(slot);
  for (const Piece& piece : prompt) index_.prefetch(key(piece.hash, slot));
  for (std::size_t i = prompt.size(); i-- > 0;) {
    const Piece& piece = prompt[i];
    if (const Index* known = index_.find(key(piece.hash, slot))) {
      const Index at = *known;
      if (l.newest == at) continue;
      unlink(l, at);
      append(l, at);
      continue;
    }
    const Index at = make();
    entries_[at].hash = piece.hash;
    entries_[at].tokens = piece.end - (i > 0 ? prompt[i - 1].end : 0);
    index_.at(key(piece.hash, slot)) = at;
    holders_.add(piece.hash, slot);
    l.tokens += entries_[at].tokens;
    ++l.pieces;
    append(l, at);
  }
  while (l.tokens > l.limit) evict(slot, l);
}

void PrefixLru::clear(Slot slot) {
  List& l = list(slot);
  while (l.oldest != kNone) evict(slot, l);
  l.limit = kUnlimited;
}

PrefixLru::Index PrefixLru::make() {
  if (free_.empty()) {
    entries_.emplace_back();
    return static_cast<Index>(entries_.size() - 1);
  }
  const Index at = free_.back();
  free_.pop_back();
  return at;
}

void PrefixLru::append(List& l, Index at) {
  entries_[at].older = l.newest;
  entries_[at].newer = kNone;
  (l.newest == kNone ? l.oldest : entries_[l.newest].newer) = at;
  l.newest = at;
}

void PrefixLru::unlink(List& l, Index at) {
  const Entry& e = entries_[at];
  (e.older == kNone ? l.oldest : entries_[e.older].newer) = e.newer;
  (e.newer == kNone ? l.newest : entries_[e.newer].older) = e.older;
}

void PrefixLru::evict(Slot slot, List& l) {
  const Index at = l.oldest;
  unlink(l, at);
  l.tokens -= entries_[at].tokens;
  --l.pieces;
  holders_.remove(entries_[at].hash, slot);
  index_.erase(key(entries_[at].hash, slot));
  free_.push_back(at);
}

}  // namespace signalbox::peers
