// SPDX-License-Identifier: Apache-2.0
// Goal: holds are counted, prefixes found, the least recently used evicted.
// Method: worked examples, and a law against a naive cache.
#include "sim/engine/block_cache.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <list>
#include <map>
#include <set>

namespace signalbox::truth {
namespace {

using Block = BlockCache::Block;

Block filled(BlockCache& cache, std::uint64_t hash) {
  const Block block = cache.allocate();
  cache.publish(block, hash);
  return block;
}

bool present(const BlockCache& cache, std::uint64_t hash) {
  const std::uint64_t hashes[] = {hash};
  return cache.match(hashes, 1).blocks == 1;
}

TEST(BlockCache, AReleasedBlockIsFreeAndStillFound) {
  BlockCache cache(4);
  cache.release(filled(cache, 7));
  EXPECT_EQ(cache.used(), 0u);
  EXPECT_TRUE(present(cache, 7));
}

TEST(BlockCache, MatchStopsAtTheFirstUnknownHash) {
  BlockCache cache(8);
  cache.release(filled(cache, 1));
  filled(cache, 2);
  cache.release(filled(cache, 4));
  const std::uint64_t hashes[] = {1, 2, 3, 4};
  const auto match = cache.match(hashes, 4);
  EXPECT_EQ(match.blocks, 2u);
  EXPECT_EQ(match.unheld, 1u);
  EXPECT_EQ(cache.match(hashes, 1).blocks, 1u);
}

TEST(BlockCache, EvictsTheLeastRecentlyReleasedFirst) {
  BlockCache cache(3);
  const Block a = filled(cache, 1), b = filled(cache, 2), c = filled(cache, 3);
  cache.release(b);
  cache.release(a);
  cache.release(c);
  cache.hold(2);
  cache.release(b);  // now the most recent
  cache.allocate();
  EXPECT_FALSE(present(cache, 1));
  cache.allocate();
  EXPECT_FALSE(present(cache, 3));
  EXPECT_TRUE(present(cache, 2));
}

TEST(BlockCache, ABlockWithoutPrefixIsReusedBeforeAnyPrefixIsForgotten) {
  BlockCache cache(2);
  const Block a = filled(cache, 1);
  const Block b = cache.allocate();
  cache.release(a);
  cache.release(b);
  EXPECT_EQ(cache.allocate(), b);
  EXPECT_TRUE(present(cache, 1));
}

TEST(BlockCache, AHeldBlockIsNeverEvicted) {
  BlockCache cache(2);
  filled(cache, 1);
  for (std::uint64_t hash = 10; hash < 20; ++hash) cache.release(filled(cache, hash));
  EXPECT_TRUE(present(cache, 1));
}

TEST(BlockCache, ForgettingKeepsHoldsAndLosesPrefixes) {
  BlockCache cache(3);
  const Block a = filled(cache, 1);
  cache.release(filled(cache, 2));
  cache.forget();
  EXPECT_FALSE(present(cache, 1));
  EXPECT_FALSE(present(cache, 2));
  EXPECT_EQ(cache.used(), 1u);
  cache.release(a);
  EXPECT_EQ(cache.free(), 3u);
}

// A cache that is obviously right: a map, and a list in the order of release.
struct Naive {
  std::map<std::uint64_t, int> holds;   // present prefixes
  std::list<std::uint64_t> released;    // oldest first
  std::size_t capacity;

  std::size_t used() const {
    return static_cast<std::size_t>(
        std::count_if(holds.begin(), holds.end(), [](const auto& h) { return h.second > 0; }));
  }
  void take(std::uint64_t hash) {
    if (const auto it = holds.find(hash); it != holds.end()) {
      if (it->second++ == 0) released.remove(hash);
      return;
    }
    if (holds.size() == capacity) {
      holds.erase(released.front());
      released.pop_front();
    }
    holds[hash] = 1;
  }
  void give(std::uint64_t hash) {
    if (--holds[hash] == 0) released.push_back(hash);
  }
};

RC_GTEST_PROP(BlockCache, BehavesLikeANaiveCache, ()) {
  const auto capacity = *rc::gen::inRange<std::uint32_t>(1, 24);
  BlockCache cache(capacity);
  Naive naive{{}, {}, capacity};
  std::vector<std::pair<std::uint64_t, Block>> held;
  std::vector<CacheEvent> events;
  std::set<std::uint64_t> told;  // what a listener to the KV events believes
  cache.log_to(&events);
  const auto operations = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 400));
  for (int operation : operations) {
    // Hashes that collide in their low bits exercise the probing.
    const std::uint64_t hash = static_cast<std::uint64_t>(operation % 40) << 32;
    if (operation % 3 != 0 && (present(cache, hash) || cache.free() > 0)) {
      held.emplace_back(hash, present(cache, hash) ? cache.hold(hash) : filled(cache, hash));
      naive.take(hash);
    } else if (!held.empty()) {
      const std::size_t pick = static_cast<std::size_t>(operation) % held.size();
      cache.release(held[pick].second);
      naive.give(held[pick].first);
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(pick));
    }
    for (const CacheEvent& event : events) {
      if (event.kind == CacheEvent::Kind::Stored) RC_ASSERT(told.insert(event.hash).second);
      if (event.kind == CacheEvent::Kind::Removed) RC_ASSERT(told.erase(event.hash) == 1u);
    }
    events.clear();
    RC_ASSERT(cache.used() == naive.used());
    RC_ASSERT(cache.cached() == naive.holds.size());
    for (std::uint64_t h = 0; h < 40; ++h)
      RC_ASSERT(present(cache, h << 32) == naive.holds.contains(h << 32) &&
                told.contains(h << 32) == naive.holds.contains(h << 32));
  }
  cache.forget();
  RC_ASSERT(events.size() == 1u && events.front().kind == CacheEvent::Kind::Cleared);
}

}  // namespace
}  // namespace signalbox::truth
