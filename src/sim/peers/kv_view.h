// SPDX-License-Identifier: Apache-2.0
// What a router knows of caches from KV events: exact blocks, late by the way of the events. Its
// size is that of the engines' caches.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/engine/cache_event.h"
#include "sim/peers/holders.h"
#include "sim/peers/query.h"

namespace signalbox::peers {

class KvView {
 public:
  void apply(Slot slot, std::span<const truth::CacheEvent> events);
  void clear(Slot slot) { blocks_.clear(slot); }

  // tokens[slot]: of the prompt that the slot's engine has, by its own block size, to the cut.
  void match(const Query& query, std::span<std::int64_t> tokens);

  // The hash under which a block is kept; 0 is no hash here.
  static std::uint64_t name(std::uint64_t hash) { return hash == 0 ? 1 : hash; }

 private:
  Holders blocks_;
  std::vector<std::int64_t> scratch_;
};

}  // namespace signalbox::peers
