// SPDX-License-Identifier: Apache-2.0
// Goal: the tree's minima, links and positions hold after any sequence of changes. Method: random
// changes against a plain map from owner to point.
#include "core/routing/index.h"

#include <gtest/gtest.h>

#include <map>

#include "base/rng.h"

namespace signalbox::routing {
namespace {

Point draw(Rng& rng) {
  Point p;
  for (float& x : p.at) x = static_cast<float>(rng.uniform());
  p.at[kInFlight] = static_cast<float>(rng.below(20));
  if (rng.chance(0.5)) p.drain = rng.uniform(0, 1000);
  if (rng.chance(0.05)) p = closed_point();
  return p;
}

class IndexTest : public testing::Test {
 protected:
  void insert(std::uint32_t owner) {
    points_[owner] = draw(rng_);
    index_.insert(owner, points_[owner], moved_);
  }
  void remove(std::uint32_t owner) {
    index_.remove(position_[owner], moved_);
    points_.erase(owner);
    position_.erase(owner);
  }
  void update(std::uint32_t owner) {
    Point p = points_[owner];
    if (rng_.chance(0.5)) p = draw(rng_);
    p.at[kStepNext] += static_cast<float>(rng_.uniform() * 0.01);
    index_.update(position_[owner], p, moved_);
    points_[owner] = p;
  }
  std::uint32_t any() {
    auto it = points_.begin();
    std::advance(it, static_cast<long>(rng_.below(points_.size())));
    return it->first;
  }

  Rng rng_{5, "index"};
  Index index_;
  std::map<std::uint32_t, Point> points_;
  std::map<std::uint32_t, std::uint32_t> position_;
  Index::Moved moved_ = [this](std::uint32_t owner, std::uint32_t position) {
    position_[owner] = position;
  };
};

TEST_F(IndexTest, minima_links_and_positions_hold_under_random_changes) {
  for (std::uint32_t step = 0; step < 6000; ++step) {
    const bool growing = step / 1500 % 2 == 0;
    const auto choice = rng_.below(10);
    if (choice < (growing ? 4u : 1u) || points_.empty()) {
      insert(step);
    } else if (choice < 5) {
      remove(any());
    } else {
      update(any());
    }
    if (step % 20 != 0) continue;
    ASSERT_TRUE(index_.valid()) << "step " << step;
    ASSERT_EQ(index_.size(), points_.size());
    for (const auto& [owner, position] : position_) ASSERT_EQ(index_.owner(position), owner);
  }
  while (!points_.empty()) remove(any());
  EXPECT_TRUE(index_.valid());
  EXPECT_EQ(index_.root(), Index::kNone);
}

TEST_F(IndexTest, the_tree_stays_shallow_when_keys_only_grow) {
  for (std::uint32_t owner = 0; owner < 5000; ++owner) insert(owner);
  for (int round = 1; round <= 20; ++round) {
    for (auto& [owner, point] : points_) {
      point = Point{};
      point.drain = round * 100.0 + owner;
      index_.update(position_[owner], point, moved_);
    }
    ASSERT_LE(index_.level(index_.root()), 8) << "round " << round;
  }
  EXPECT_TRUE(index_.valid());
}

TEST_F(IndexTest, marks_reach_the_root_and_are_cleared) {
  for (std::uint32_t owner = 0; owner < 500; ++owner) insert(owner);
  index_.mark(position_[123], 4);
  const auto marked = [this] {
    std::uint8_t all = 0;
    for (std::uint32_t i = 0; i < Index::kFan; ++i) all |= index_.marks(index_.root())[i];
    return all;
  };
  EXPECT_EQ(marked(), 4);
  index_.mark_place(position_[321], 2);
  EXPECT_EQ(marked(), 4);
  index_.spread_marks();
  EXPECT_EQ(marked(), 6);
  index_.clear_marks();
  EXPECT_EQ(marked(), 0);
}

}  // namespace
}  // namespace signalbox::routing
