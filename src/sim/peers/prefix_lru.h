// SPDX-License-Identifier: Apache-2.0
// A router's guess of what engines cache, from where it sent prompts: per slot the least recently
// used pieces go first, and a piece never before what stands on it.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "sim/peers/flat_map.h"
#include "sim/peers/holders.h"
#include "sim/peers/query.h"

namespace signalbox::peers {

class PrefixLru {
 public:
  // Most tokens and pieces that the slot keeps; what is above goes at once.
  void limit(Slot slot, std::int64_t tokens);
  void trim(Slot slot, std::size_t pieces);
  // The slot has the prompt now, as the most recent of all.
  void touch(Slot slot, std::span<const Piece> prompt);
  void clear(Slot slot);

  void match(std::span<const Piece> prompt, std::span<std::int64_t> tokens) const {
    holders_.match(prompt, tokens);
  }
  bool holds(std::uint64_t hash, Slot slot) const { return holders_.holds(hash, slot); }
  std::int64_t tokens(Slot slot) const { return slot < lists_.size() ? lists_[slot].tokens : 0; }
  std::int64_t limit_of(Slot slot) const {
    return slot < lists_.size() ? lists_[slot].limit : kUnlimited;
  }

  // Visits what would go next to make room for `tokens`, oldest first, as (hash, tokens).
  template <typename Visit>
  void victims(Slot slot, std::int64_t tokens, Visit visit) const {
    if (slot >= lists_.size()) return;
    for (Index at = lists_[slot].oldest; at != kNone && tokens > 0; at = entries_[at].newer) {
      visit(entries_[at].hash, entries_[at].tokens);
      tokens -= entries_[at].tokens;
    }
  }

  std::size_t pieces(Slot slot) const { return slot < lists_.size() ? lists_[slot].pieces : 0; }

 private:
  using Index = std::uint32_t;
  static constexpr Index kNone = ~Index{0};
  static constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();

  struct Entry {
    std::uint64_t hash = 0;
    std::int64_t tokens = 0;
    Index older = kNone;
    Index newer = kNone;
  };
  struct List {
    Index oldest = kNone;
    Index newest = kNone;
    std::int64_t tokens = 0;
    std::int64_t limit = kUnlimited;
    std::size_t pieces = 0;
  };

  static std::uint64_t key(std::uint64_t hash, Slot slot);
  List& list(Slot slot);
  Index make();
  void append(List& list, Index at);
  void unlink(List& list, Index at);
  void evict(Slot slot, List& list);

  Holders holders_;
  FlatMap<Index> index_;  // by slot and hash
  std::vector<Entry> entries_;
  std::vector<Index> free_;
  std::vector<List> lists_;
};

}  // namespace signalbox::peers
