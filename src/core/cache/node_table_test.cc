// SPDX-License-Identifier: Apache-2.0
// Goal: the table is a map under growth and removal. Method: the same calls on std::map.
#include "core/cache/node_table.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>

#include "base/rng.h"

namespace signalbox::cache {
namespace {

RC_GTEST_PROP(NodeTable, AnswersLikeAMap, (std::uint64_t seed)) {
  NodeTable table;
  std::map<std::uint64_t, std::pair<std::uint32_t, std::uint32_t>> map;
  Rng rng(seed, "node_table");
  const std::uint64_t keys = 1 + rng.below(3000);
  for (std::uint32_t i = 1; i < 3000; ++i) {
    const std::uint64_t hash = rng.below(keys);
    const auto depth = static_cast<std::uint32_t>(rng.below(3));
    if (rng.chance(0.6)) {
      RC_ASSERT(table.insert(hash, depth, i) == map.try_emplace(hash, depth, i).second);
    } else {
      table.erase(hash);
      map.erase(hash);
    }
  }
  RC_ASSERT(table.size() == map.size());
  for (std::uint64_t hash = 0; hash < keys; ++hash) {
    const auto at = map.find(hash);
    for (std::uint32_t depth = 0; depth < 3; ++depth) {
      const bool there = at != map.end() && at->second.first == depth;
      RC_ASSERT(table.find(hash, depth) == (there ? at->second.second : 0));
    }
  }
}

TEST(NodeTable, RefusesHashesMadeToCollideInsteadOfGrowingWithoutEnd) {
  // Multiples of the inverse of the spreading factor agree in all leading bits.
  constexpr std::uint64_t kInverse = 0xF1DE83E19937733Dull;
  ASSERT_EQ(kInverse * 0x9E3779B97F4A7C15ull, 1u);
  NodeTable table;
  std::uint32_t accepted = 0;
  for (std::uint64_t i = 1; i <= 2000; ++i) accepted += table.insert(kInverse * i, 0, 1) ? 1 : 0;
  EXPECT_LT(accepted, 512u);
  EXPECT_LT(table.bytes(), 8u << 20);
}

TEST(NodeTable, TakesAboutFortyBytesANode) {
  NodeTable table;
  Rng rng(1, "node_table");
  for (std::uint32_t i = 1; i <= 200'000; ++i) {
    table.insert(rng.next(), 0, i);
    if (i > 20'000) {
      ASSERT_LT(static_cast<double>(table.bytes()) / i, 41) << i;
    }
  }
}

}  // namespace
}  // namespace signalbox::cache
