// SPDX-License-Identifier: Apache-2.0
// Goal: ids of different things do not mix and 0 is none. Method: type traits and values.
#include "base/ids.h"

#include <gtest/gtest.h>

#include <type_traits>
#include <unordered_set>

namespace signalbox {
namespace {

using ShipId = Id<struct ShipTag>;
using PortId = Id<struct PortTag, std::uint64_t>;

static_assert(!std::is_convertible_v<ShipId, PortId>);
static_assert(!std::is_convertible_v<int, ShipId>);
static_assert(!std::is_convertible_v<ShipId, std::uint32_t>);
static_assert(sizeof(ShipId) == sizeof(std::uint32_t));

TEST(Id, ZeroIsNone) {
  EXPECT_FALSE(ShipId{});
  EXPECT_TRUE(ShipId(3));
  EXPECT_EQ(ShipId(3).value(), 3u);
}

TEST(Id, OrdersAndHashesByValue) {
  EXPECT_LT(ShipId(1), ShipId(2));
  EXPECT_EQ(PortId(9), PortId(9));
  std::unordered_set<ShipId> set;
  for (std::uint32_t i = 1; i <= 100; ++i) set.insert(ShipId(i));
  set.insert(ShipId(50));
  EXPECT_EQ(set.size(), 100u);
}

}  // namespace
}  // namespace signalbox
