// SPDX-License-Identifier: Apache-2.0
// The KV cache as blocks: reference counts, a prefix index, and an LRU of blocks that nobody holds
// but that still carry their prefix. Blocks that follow each other in a chain and have the same
// holders are one run, so that a prompt of a thousand blocks costs a few steps. Pure.
// Keeps: used() + free() = capacity(); a held block is never evicted.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/engine/cache_event.h"

namespace signalbox::truth {

class BlockCache {
 public:
  using Run = std::uint32_t;
  static constexpr Run kNone = ~Run{0};

  // What one sequence holds, from its beginning on. Filled and emptied by the cache alone.
  class Held {
   public:
    std::uint32_t blocks() const { return blocks_; }

   private:
    friend class BlockCache;
    // `blocks` blocks that end with the last one of `run`, or, without a run, that only this
    // sequence knows: their prefix was in the cache already when they were computed.
    struct Piece {
      Run run = kNone;
      std::uint32_t blocks = 0;
    };
    std::vector<Piece> pieces_;
    std::uint32_t blank_ = 0;   // at the end, not published yet
    std::uint32_t blocks_ = 0;  // in all
  };

  explicit BlockCache(std::uint32_t capacity);

  std::uint32_t capacity() const { return capacity_; }
  std::uint32_t used() const { return used_; }
  std::uint32_t free() const { return capacity_ - used_; }

  // Hashes are those of a chain: hash i stands for all blocks up to i, so equal hashes have equal
  // ones before them.
  using Hashes = std::span<const std::uint64_t>;

  // How many leading hashes are present, at most `most`; of those blocks, `unheld` are free now.
  struct Match {
    std::uint32_t blocks = 0;
    std::uint32_t unheld = 0;
  };
  Match match(Hashes hashes, std::size_t most) const;

  // Takes a hold on the blocks of the first `blocks` hashes, which match() has found. `held` is
  // empty.
  void hold(Hashes hashes, std::uint32_t blocks, Held& held);
  // Adds `blocks` blocks without content: never used before, else the least recently used ones,
  // whose prefix is forgotten. free() must be as many. Their hashes are appended to `evicted`.
  void allocate(std::uint32_t blocks, Held& held, std::vector<std::uint64_t>* evicted = nullptr);
  // The blocks from the first that was not published yet up to `until` are full: others may find
  // them by `hashes`, of the sequence's beginning. Keeps the older block when a hash is known.
  void publish(Hashes hashes, std::uint32_t until, Held& held);
  // Gives all holds back, the last block first, so that a prefix outlives what stands on it. A
  // block nobody holds stays findable until it is evicted.
  void release(Held& held);

  // Forgets every prefix; holds stay.
  void forget();

  std::size_t cached() const { return cached_; }  // blocks that can be found

  // Appends from now on what happens to prefixes; null: nothing. Borrowed.
  void log_to(std::vector<CacheEvent>* log) { log_ = log; }

 private:
  struct Entry {
    std::vector<std::uint64_t> hashes;  // of its blocks, in the order of the chain
    Run before = kNone;                 // whose end was cut off as this run
    Run previous = kNone;               // in the list of runs that nobody holds
    Run next = kNone;
    std::uint32_t holds = 0;
    bool findable = false;
  };

  struct Slot {
    std::uint64_t hash = 0;
    Run run = kNone;
  };

  std::uint32_t size(Run run) const {
    return static_cast<std::uint32_t>(entries_[run].hashes.size());
  }
  // Blocks of the run that carry these hashes, from its first on.
  std::uint32_t common(Run run, Hashes hashes) const;
  // Where a block is, if it can be found.
  struct Place {
    Run run = kNone;
    std::size_t offset = 0;
  };
  Place find(Hashes hashes, std::size_t index) const;
  Place find_next(Place before, std::uint64_t hash) const;
  void add(std::uint64_t hash, Held& held);
  Run make();
  void drop(Run run);
  void split(Run run, std::uint32_t at);
  void evict(std::uint32_t blocks, std::vector<std::uint64_t>* evicted);
  void release_piece(const Held::Piece& piece);

  void push(Run run);  // as the most recent
  void unlink(Run run);
  std::size_t slot_of(std::uint64_t hash) const;
  Run lookup(std::uint64_t first) const;
  void put(const Slot& slot);
  void insert(Run run);
  void erase(Run run);
  void grow();
  void log(CacheEvent::Kind kind, std::uint64_t hash) {
    if (log_ != nullptr) log_->push_back({kind, hash});
  }

  std::uint32_t capacity_;
  std::uint32_t used_ = 0;    // held
  std::uint32_t unheld_ = 0;  // findable, and nobody holds them
  std::size_t cached_ = 0;
  std::vector<Entry> entries_;
  std::vector<Run> spare_;    // entries to use again
  Run oldest_ = kNone;
  Run newest_ = kNone;
  std::vector<Slot> index_;   // by the first hash of a run: open addressing, a power of two
  std::size_t index_used_ = 0;
  std::vector<CacheEvent>* log_ = nullptr;
};

}  // namespace signalbox::truth
