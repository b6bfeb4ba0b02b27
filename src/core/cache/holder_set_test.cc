// SPDX-License-Identifier: Apache-2.0
// Goal: a sorted map from endpoint to residency. Method: the same calls on std::map.
#include "core/cache/holder_set.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>

#include "base/rng.h"

namespace signalbox::cache {
namespace {

using model::EndpointId;

RC_GTEST_PROP(HolderSet, AnswersLikeASortedMap, (std::uint64_t seed)) {
  HolderSet set;
  std::map<EndpointId, std::uint32_t> map;
  Rng rng(seed, "holders");
  for (std::uint32_t i = 1; i < 400; ++i) {
    const EndpointId id(1 + static_cast<std::uint32_t>(rng.below(40)));
    const std::size_t before = set.heap_bytes();
    if (map.contains(id)) {
      set.erase(id);
      map.erase(id);
    } else {
      const std::size_t growth = set.growth();
      set.insert(id, i);
      map[id] = i;
      RC_ASSERT(set.heap_bytes() == before + growth);
    }
    HolderSet moved(std::move(set));
    set = std::move(moved);
    RC_ASSERT(set.size() == map.size());
    std::size_t k = 0;
    for (const auto& [holder, residency] : map) {
      RC_ASSERT(set.ids()[k] == holder);
      RC_ASSERT(set.residency_at(k) == residency);
      RC_ASSERT(set.find(holder) == residency);
      ++k;
    }
    RC_ASSERT(set.find(EndpointId(99)) == 0u);
  }
}

TEST(HolderSet, NeedsNoHeapForOneHolder) {
  HolderSet set;
  for (std::uint32_t i = 1; i <= 100; ++i) set.insert(EndpointId(i), i);
  EXPECT_GT(set.heap_bytes(), 0u);
  for (std::uint32_t i = 1; i < 100; ++i) set.erase(EndpointId(i));
  EXPECT_EQ(set.heap_bytes(), 0u);
  EXPECT_EQ(set.find(EndpointId(100)), 100u);
}

}  // namespace
}  // namespace signalbox::cache
