// SPDX-License-Identifier: Apache-2.0
// What an engine publishes about its prefix cache: KV events.
#pragma once

#include <cstdint>

namespace signalbox::truth {

struct CacheEvent {
  enum class Kind : std::uint8_t {
    Stored,   // the block can be found
    Removed,  // the block was evicted
    Cleared,  // nothing can be found any more
  };
  Kind kind = Kind::Stored;
  std::uint64_t hash = 0;  // of the block; unused when Cleared
};

}  // namespace signalbox::truth
