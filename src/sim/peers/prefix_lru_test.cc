// SPDX-License-Identifier: Apache-2.0
// Goal: the tables answer as naive ones do. Method: laws over random touches, limits and leavings,
// with enough slots for several words of bits.
#include "sim/peers/prefix_lru.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <map>
#include <set>

#include "base/rng.h"
#include "sim/peers/active_blocks.h"

namespace signalbox::peers {
namespace {

// A random walk down a small tree of contents: prompts share beginnings often.
std::vector<Piece> walk(Rng& rng) {
  std::vector<Piece> pieces;
  std::uint64_t hash = 7;
  std::int64_t end = 0;
  const std::uint64_t depth = 1 + rng.below(6);
  for (std::uint64_t i = 0; i < depth; ++i) {
    const std::uint64_t content = rng.below(3);
    hash = (hash * 31 + content + 1) * 0x9E3779B97F4A7C15ull | 1;
    end += 16 + static_cast<std::int64_t>(content) * 100;
    pieces.push_back({hash, end});
  }
  return pieces;
}

struct Naive {
  struct Held {
    std::uint64_t hash;
    std::int64_t tokens;
  };
  std::list<Held> held;  // oldest first
  std::int64_t limit = 1'000'000'000;

  bool has(std::uint64_t hash) const {
    return std::any_of(held.begin(), held.end(), [&](const Held& h) { return h.hash == hash; });
  }
  std::int64_t tokens() const {
    std::int64_t sum = 0;
    for (const Held& h : held) sum += h.tokens;
    return sum;
  }
  void shrink() {
    while (tokens() > limit) held.pop_front();
  }
  void touch(const std::vector<Piece>& prompt) {
    for (std::size_t i = prompt.size(); i-- > 0;) {
      held.remove_if([&](const Held& h) { return h.hash == prompt[i].hash; });
      held.push_back({prompt[i].hash, prompt[i].end - (i > 0 ? prompt[i - 1].end : 0)});
    }
    shrink();
  }
  std::int64_t match(const std::vector<Piece>& prompt) const {
    std::int64_t end = 0;
    for (const Piece& piece : prompt) {
      if (!has(piece.hash)) break;
      end = piece.end;
    }
    return end;
  }
};

TEST(PrefixLru, BehavesLikeNaiveLists) {
  constexpr std::size_t kSlots = 130;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    Rng rng(seed, "lru");
    PrefixLru lru;
    std::vector<Naive> naive(kSlots);
    std::vector<std::int64_t> tokens(kSlots);
    for (int step = 0; step < 1'500; ++step) {
      const auto slot = static_cast<Slot>(rng.below(kSlots) / (1 + rng.below(60)));
      const std::vector<Piece> prompt = walk(rng);
      const std::uint64_t what = rng.below(20);
      if (what == 0) {
        naive[slot].limit = static_cast<std::int64_t>(rng.below(2'000));
        naive[slot].shrink();
        lru.limit(slot, naive[slot].limit);
      } else if (what == 1) {
        naive[slot] = {};
        lru.clear(slot);
      } else if (what == 2) {
        const std::size_t pieces = rng.below(8);
        while (naive[slot].held.size() > pieces) naive[slot].held.pop_front();
        lru.trim(slot, pieces);
      } else {
        naive[slot].touch(prompt);
        lru.touch(slot, prompt);
      }
      ASSERT_EQ(lru.tokens(slot), naive[slot].tokens());
      ASSERT_EQ(lru.pieces(slot), naive[slot].held.size());
      const std::vector<Piece> asked = walk(rng);
      lru.match(asked, tokens);
      for (Slot s = 0; s < kSlots; ++s) ASSERT_EQ(tokens[s], naive[s].match(asked)) << seed;
    }
  }
}

TEST(PrefixLru, WhatStandsOnAPieceGoesBeforeIt) {
  PrefixLru lru;
  const std::vector<Piece> prompt = {{11, 100}, {12, 200}, {13, 300}};
  lru.touch(0, prompt);
  lru.limit(0, 250);
  std::vector<std::int64_t> tokens(1);
  lru.match(prompt, tokens);
  EXPECT_EQ(tokens[0], 200);
  std::vector<std::uint64_t> next;
  lru.victims(0, 101, [&](std::uint64_t hash, std::int64_t) { next.push_back(hash); });
  EXPECT_EQ(next, (std::vector<std::uint64_t>{12, 11}));
}

TEST(ActiveBlocks, CountsSharedPiecesOnceWhileAnybodyHasThem) {
  Rng rng(3, "active");
  ActiveBlocks active;
  std::vector<std::pair<Slot, std::vector<Piece>>> flying;
  for (int step = 0; step < 3'000; ++step) {
    if (flying.size() < 40 && rng.chance(0.55)) {
      flying.emplace_back(static_cast<Slot>(rng.below(5)), walk(rng));
      active.begin(flying.back().first, flying.back().second);
    } else if (!flying.empty()) {
      const std::size_t pick = rng.below(flying.size());
      active.end(flying[pick].first, flying[pick].second);
      flying.erase(flying.begin() + static_cast<std::ptrdiff_t>(pick));
    }
    for (Slot slot = 0; slot < 5; ++slot) {
      std::map<std::uint64_t, std::int64_t> pieces;
      for (const auto& [where, prompt] : flying) {
        std::int64_t from = 0;
        for (const Piece& piece : prompt) {
          if (where == slot) pieces[piece.hash] = piece.end - from;
          from = piece.end;
        }
      }
      std::int64_t sum = 0;
      for (const auto& [hash, tokens] : pieces) sum += tokens;
      ASSERT_EQ(active.tokens(slot), sum);
    }
  }
}

TEST(FlatMap, BehavesLikeAMap) {
  Rng rng(5, "map");
  FlatMap<int> flat;
  std::map<std::uint64_t, int> naive;
  for (int step = 0; step < 20'000; ++step) {
    const std::uint64_t key = 1 + rng.below(300) * (1ull << 40);
    if (rng.chance(0.6)) {
      flat.at(key) = step;
      naive[key] = step;
    } else {
      flat.erase(key);
      naive.erase(key);
    }
    const std::uint64_t asked = 1 + rng.below(300) * (1ull << 40);
    const int* const found = flat.find(asked);
    ASSERT_EQ(found != nullptr, naive.contains(asked));
    if (found != nullptr) {
      ASSERT_EQ(*found, naive[asked]);
    }
    ASSERT_EQ(flat.size(), naive.size());
  }
}

}  // namespace
}  // namespace signalbox::peers
