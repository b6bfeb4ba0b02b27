// SPDX-License-Identifier: Apache-2.0
// Goal: holds are counted, prefixes found, the least recently used evicted.
// Method: worked examples, and a law against a cache of single blocks that knows nothing of runs.
#include "sim/engine/block_cache.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <list>
#include <map>
#include <set>

namespace signalbox::truth {
namespace {

using Held = BlockCache::Held;
using Chain = std::vector<std::uint64_t>;

Chain chain(std::uint64_t name, std::size_t blocks) {
  Chain hashes;
  for (std::size_t i = 0; i < blocks; ++i) hashes.push_back(name * 1000 + i);
  return hashes;
}

// Takes what is known of the chain and computes the rest.
Held filled(BlockCache& cache, const Chain& hashes) {
  Held held;
  cache.hold(hashes, cache.match(hashes, hashes.size()).blocks, held);
  cache.allocate(static_cast<std::uint32_t>(hashes.size()) - held.blocks(), held);
  cache.publish(hashes, static_cast<std::uint32_t>(hashes.size()), held);
  return held;
}

std::uint32_t known(const BlockCache& cache, const Chain& hashes) {
  return cache.match(hashes, hashes.size()).blocks;
}

TEST(BlockCache, AReleasedBlockIsFreeAndStillFound) {
  BlockCache cache(4);
  Held held = filled(cache, chain(7, 2));
  EXPECT_EQ(cache.used(), 2u);
  cache.release(held);
  EXPECT_EQ(cache.used(), 0u);
  EXPECT_EQ(known(cache, chain(7, 2)), 2u);
}

TEST(BlockCache, AMatchStopsAtTheFirstUnknownHashAndCountsWhatIsFree) {
  BlockCache cache(8);
  Held whole = filled(cache, chain(1, 3));
  Held part;
  cache.hold(chain(1, 2), 2, part);
  cache.release(whole);
  const auto match = cache.match(chain(1, 5), 5);
  EXPECT_EQ(match.blocks, 3u);
  EXPECT_EQ(match.unheld, 1u);
  EXPECT_EQ(cache.match(chain(1, 5), 1).blocks, 1u);
  EXPECT_EQ(cache.used(), 2u);
}

TEST(BlockCache, EvictsTheLeastRecentlyReleasedFirstAndItsTailBeforeItsHead) {
  BlockCache cache(6);
  Held a = filled(cache, chain(1, 2));
  Held b = filled(cache, chain(2, 2));
  Held c = filled(cache, chain(3, 2));
  cache.release(b);
  cache.release(a);
  cache.release(c);
  cache.hold(chain(2, 2), 2, b);
  cache.release(b);  // now the most recent
  Held other;
  cache.allocate(1, other);
  EXPECT_EQ(known(cache, chain(1, 2)), 1u);
  cache.allocate(2, other);
  EXPECT_EQ(known(cache, chain(1, 2)), 0u);
  EXPECT_EQ(known(cache, chain(3, 2)), 1u);
  EXPECT_EQ(known(cache, chain(2, 2)), 2u);
}

TEST(BlockCache, ABlockWithoutPrefixIsReusedBeforeAnyPrefixIsForgotten) {
  BlockCache cache(2);
  Held a = filled(cache, chain(1, 1));
  Held blank;
  cache.allocate(1, blank);
  cache.release(a);
  cache.release(blank);
  cache.allocate(1, blank);
  EXPECT_EQ(known(cache, chain(1, 1)), 1u);
}

TEST(BlockCache, AHeldBlockIsNeverEvicted) {
  BlockCache cache(2);
  const Held stays = filled(cache, chain(1, 1));
  for (std::uint64_t name = 10; name < 20; ++name) {
    Held held = filled(cache, chain(name, 1));
    cache.release(held);
  }
  EXPECT_EQ(known(cache, chain(1, 1)), 1u);
}

TEST(BlockCache, ForgettingKeepsHoldsAndLosesPrefixes) {
  BlockCache cache(3);
  Held a = filled(cache, chain(1, 1));
  Held b = filled(cache, chain(2, 1));
  cache.release(b);
  cache.forget();
  EXPECT_EQ(known(cache, chain(1, 1)), 0u);
  EXPECT_EQ(known(cache, chain(2, 1)), 0u);
  EXPECT_EQ(cache.used(), 1u);
  cache.release(a);
  EXPECT_EQ(cache.free(), 3u);
}

TEST(BlockCache, WhatTwoComputeAtOnceIsFoundOnceAndHeldTwice) {
  BlockCache cache(8);
  Held first, second;
  cache.allocate(3, first);
  cache.allocate(3, second);
  cache.publish(chain(1, 3), 3, first);
  cache.publish(chain(1, 3), 3, second);
  EXPECT_EQ(cache.cached(), 3u);
  EXPECT_EQ(cache.used(), 6u);
  cache.release(first);
  EXPECT_EQ(cache.match(chain(1, 3), 3).unheld, 3u);
  cache.release(second);
  EXPECT_EQ(cache.used(), 0u);
}

// A cache of single blocks that is obviously right: every block by itself, and a list in the order
// of release.
class Naive {
 public:
  explicit Naive(std::size_t capacity) : blank_(capacity) {}

  struct Sequence {
    std::vector<int> blocks;
    std::size_t published = 0;
  };

  std::size_t match(const Chain& hashes) const {
    std::size_t n = 0;
    while (n < hashes.size() && by_hash_.contains(hashes[n])) ++n;
    return n;
  }
  std::size_t unheld(const Chain& hashes) const {
    std::size_t n = 0;
    for (std::size_t i = 0; i < match(hashes); ++i) n += at(by_hash_.at(hashes[i])).holds == 0;
    return n;
  }
  void hold(const Chain& hashes, std::size_t n, Sequence& s) {
    for (std::size_t i = 0; i < n; ++i) {
      const int block = by_hash_.at(hashes[i]);
      if (blocks_.at(block).holds++ == 0) released_.remove(block);
      s.blocks.push_back(block);
    }
    s.published = n;
  }
  std::size_t free() const { return blank_ + released_.size(); }
  void allocate(Sequence& s) {
    if (blank_ == 0) {
      const int oldest = released_.front();
      released_.pop_front();
      by_hash_.erase(blocks_.at(oldest).hash);
      blocks_.erase(oldest);
      ++blank_;
    }
    --blank_;
    blocks_[++last_] = {0, 1, false};
    s.blocks.push_back(last_);
  }
  void publish(const Chain& hashes, std::size_t until, Sequence& s) {
    for (; s.published < until; ++s.published) {
      Block& block = blocks_.at(s.blocks[s.published]);
      const std::uint64_t hash = hashes[s.published];
      if (by_hash_.contains(hash)) continue;
      block.hash = hash;
      block.known = true;
      by_hash_[hash] = s.blocks[s.published];
    }
  }
  void release(Sequence& s) {
    for (auto it = s.blocks.rbegin(); it != s.blocks.rend(); ++it) {
      Block& block = blocks_.at(*it);
      if (--block.holds > 0) continue;
      if (block.known) {
        released_.push_back(*it);
      } else {
        blocks_.erase(*it);
        ++blank_;
      }
    }
    s = Sequence{};
  }
  void forget() {
    for (const int block : released_) blocks_.erase(block);
    blank_ += released_.size();
    released_.clear();
    by_hash_.clear();
    for (auto& [name, block] : blocks_) block.known = false;
  }
  const std::map<std::uint64_t, int>& by_hash() const { return by_hash_; }
  std::size_t used() const {
    return static_cast<std::size_t>(std::count_if(
        blocks_.begin(), blocks_.end(), [](const auto& b) { return b.second.holds > 0; }));
  }

 private:
  struct Block {
    std::uint64_t hash = 0;
    int holds = 0;
    bool known = false;
  };
  const Block& at(int block) const { return blocks_.at(block); }

  std::map<int, Block> blocks_;            // with content or held
  std::map<std::uint64_t, int> by_hash_;
  std::list<int> released_;                // known, and nobody holds them: oldest first
  std::size_t blank_;
  int last_ = 0;
};

// Chains that share beginnings: the digits of `name` in base 3 say where they part.
Chain branching(int name, std::size_t blocks) {
  Chain hashes;
  std::uint64_t hash = 1;
  for (std::size_t i = 0; i < blocks; ++i) {
    const int digit = i % 3 == 0 ? name % 3 : 0;
    if (i % 3 == 0) name /= 3;
    hash = hash * 7 + static_cast<std::uint64_t>(digit) + 1;
    hashes.push_back(hash << 20);  // equal low bits exercise the probing
  }
  return hashes;
}

struct Operation {
  int kind;
  int name;
  std::size_t blocks;
  std::size_t pick;
};

rc::Gen<Operation> operation() {
  return rc::gen::build<Operation>(
      rc::gen::set(&Operation::kind, rc::gen::inRange(0, 20)),
      rc::gen::set(&Operation::name, rc::gen::inRange(0, 9)),
      rc::gen::set(&Operation::blocks, rc::gen::inRange<std::size_t>(1, 9)),
      rc::gen::set(&Operation::pick, rc::gen::inRange<std::size_t>(0, 1000)));
}

struct Pair {
  Chain hashes;
  Held held;
  Naive::Sequence naive;
};

RC_GTEST_PROP(BlockCache, BehavesLikeACacheOfSingleBlocks, ()) {
  const auto capacity = *rc::gen::inRange<std::uint32_t>(1, 32);
  BlockCache cache(capacity);
  Naive naive(capacity);
  std::list<Pair> pairs;
  std::vector<CacheEvent> events;
  std::set<std::uint64_t> told;  // what a listener to the KV events believes
  cache.log_to(&events);
  const auto operations = *rc::gen::container<std::vector<Operation>>(operation());
  for (const Operation& o : operations) {
    auto at = pairs.begin();
    if (!pairs.empty()) std::advance(at, o.pick % pairs.size());
    if (o.kind < 7) {  // somebody comes and takes what is known
      Pair& p = pairs.emplace_back(Pair{branching(o.name, o.blocks), {}, {}});
      const auto match = cache.match(p.hashes, p.hashes.size());
      RC_ASSERT(match.blocks == naive.match(p.hashes));
      RC_ASSERT(match.unheld == naive.unheld(p.hashes));
      cache.hold(p.hashes, match.blocks, p.held);
      naive.hold(p.hashes, match.blocks, p.naive);
    } else if (o.kind < 13 && !pairs.empty()) {  // somebody gets on
      const std::size_t more = std::min<std::size_t>(1 + o.blocks % 3, cache.free());
      cache.allocate(static_cast<std::uint32_t>(more), at->held);
      for (std::size_t i = 0; i < more; ++i) naive.allocate(at->naive);
    } else if (o.kind < 16 && !pairs.empty()) {  // and fills blocks
      const std::size_t until = std::min(at->naive.blocks.size(), at->hashes.size());
      cache.publish(at->hashes, static_cast<std::uint32_t>(until), at->held);
      naive.publish(at->hashes, until, at->naive);
    } else if (o.kind < 19 && !pairs.empty()) {  // and leaves
      cache.release(at->held);
      naive.release(at->naive);
      pairs.erase(at);
    } else if (o.kind == 19) {
      cache.forget();
      naive.forget();
    }
    for (const CacheEvent& event : events) {
      if (event.kind == CacheEvent::Kind::Stored) RC_ASSERT(told.insert(event.hash).second);
      if (event.kind == CacheEvent::Kind::Removed) RC_ASSERT(told.erase(event.hash) == 1u);
      if (event.kind == CacheEvent::Kind::Cleared) told.clear();
    }
    events.clear();
    RC_ASSERT(cache.used() == naive.used());
    RC_ASSERT(cache.free() == naive.free());
    RC_ASSERT(cache.cached() == naive.by_hash().size());
    RC_ASSERT(told.size() == naive.by_hash().size());
    for (const std::uint64_t hash : told) RC_ASSERT(naive.by_hash().contains(hash));
    for (int name = 0; name < 9; ++name) {
      const Chain hashes = branching(name, 8);
      RC_ASSERT(known(cache, hashes) == naive.match(hashes));
    }
  }
}

}  // namespace
}  // namespace signalbox::truth
