// SPDX-License-Identifier: Apache-2.0
// The KV cache as blocks: reference counts, a prefix index by block hash, and an LRU of blocks that
// nobody holds but that still carry their prefix. Pure.
// Keeps: used() + free() = capacity(); a held block is never evicted.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/engine/cache_event.h"

namespace signalbox::truth {

class BlockCache {
 public:
  using Block = std::uint32_t;
  static constexpr Block kNone = ~Block{0};

  explicit BlockCache(std::uint32_t capacity);

  std::uint32_t capacity() const { return capacity_; }
  std::uint32_t used() const { return used_; }
  std::uint32_t free() const { return capacity_ - used_; }

  // How many leading hashes are present, at most `most`; of those blocks, `unheld` are free now.
  struct Match {
    std::uint32_t blocks = 0;
    std::uint32_t unheld = 0;
  };
  Match match(std::span<const std::uint64_t> hashes, std::size_t most) const;

  // Takes a hold on the block of a hash that match() has found.
  Block hold(std::uint64_t hash);
  // A block without content, held once: never used before, else the least recently used one, whose
  // prefix is forgotten. free() must be > 0.
  Block allocate();
  // The block is full: others may find it. Keeps the older block when the hash is known already.
  void publish(Block block, std::uint64_t hash);
  // Gives one hold back. A block nobody holds stays findable until it is evicted.
  void release(Block block);

  // Forgets every prefix; holds stay.
  void forget();

  std::size_t cached() const { return index_used_; }  // blocks that can be found

  // Appends from now on what happens to prefixes; null: nothing. Borrowed.
  void log_to(std::vector<CacheEvent>* log) { log_ = log; }

 private:
  struct Entry {
    std::uint64_t hash = 0;
    Block previous = kNone;  // in the list of free blocks
    Block next = kNone;
    std::uint32_t holds = 0;
    bool published = false;
  };

  void push(Block block);  // to the end of its urgency: unpublished first, then least recent
  void unlink(Block block);
  std::size_t slot_of(std::uint64_t hash) const;
  Block lookup(std::uint64_t hash) const;
  void insert(std::uint64_t hash, Block block);
  void erase(std::uint64_t hash);
  void grow();
  void log(CacheEvent::Kind kind, std::uint64_t hash) {
    if (log_ != nullptr) log_->push_back({kind, hash});
  }

  std::uint32_t capacity_;
  std::uint32_t used_ = 0;
  std::vector<Entry> entries_;  // grows to capacity as blocks are first used
  Block oldest_ = kNone;
  Block newest_ = kNone;
  std::vector<Block> index_;    // open addressing by hash, a power of two
  std::size_t index_used_ = 0;
  std::vector<CacheEvent>* log_ = nullptr;
};

}  // namespace signalbox::truth
