// SPDX-License-Identifier: Apache-2.0
// Goal: the containers keep their limits and their order. Method: laws against std::deque.
#include "base/bounded.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <deque>
#include <memory>
#include <string>

namespace signalbox {
namespace {

RC_GTEST_PROP(BoundedQueueLaw, IsADequeWithALimit, ()) {
  const auto limit = static_cast<std::size_t>(*rc::gen::inRange(0, 40));
  const auto steps = *rc::gen::container<std::vector<int>>(rc::gen::inRange(-60, 100));
  BoundedQueue<int> queue(limit);
  std::deque<int> model;
  for (int step : steps) {
    if (step >= 0) {
      const bool room = model.size() < limit;
      RC_ASSERT(queue.push(step) == room);
      if (room) model.push_back(step);
    } else if (!model.empty()) {
      RC_ASSERT(queue.pop() == model.front());
      model.pop_front();
    }
    RC_ASSERT(queue.size() == model.size());
    RC_ASSERT(queue.full() == (model.size() == limit));
    for (std::size_t i = 0; i < model.size(); ++i) RC_ASSERT(queue[i] == model[i]);
  }
}

TEST(BoundedQueue, ReleasesWhatItPops) {
  BoundedQueue<std::shared_ptr<int>> queue(2);
  auto value = std::make_shared<int>(7);
  ASSERT_TRUE(queue.push(value));
  EXPECT_EQ(*queue.front(), 7);
  EXPECT_EQ(value.use_count(), 2);
  queue.clear();
  EXPECT_EQ(value.use_count(), 1);
  EXPECT_TRUE(queue.empty());
}

RC_GTEST_PROP(RingBufferLaw, KeepsTheNewestInOrder, ()) {
  const auto capacity = static_cast<std::size_t>(*rc::gen::inRange(1, 20));
  const auto values = *rc::gen::container<std::vector<int>>(rc::gen::arbitrary<int>());
  RingBuffer<int> ring(capacity);
  for (int v : values) ring.push(v);
  const std::size_t kept = std::min(capacity, values.size());
  RC_ASSERT(ring.size() == kept);
  for (std::size_t i = 0; i < kept; ++i) RC_ASSERT(ring[i] == values[values.size() - kept + i]);
  if (kept > 0) RC_ASSERT(ring.newest() == values.back());
}

TEST(LruMap, EvictsTheLongestUnused) {
  LruMap<std::string, int> map(2);
  map.find_or_make("a", [] { return 1; });
  map.find_or_make("b", [] { return 2; });
  EXPECT_EQ(map.find_or_make("a", [] { return 9; }), 1);
  map.find_or_make("c", [] { return 3; });
  EXPECT_EQ(map.size(), 2u);
  EXPECT_EQ(map.find("b"), nullptr);
  ASSERT_NE(map.find("a"), nullptr);
  EXPECT_EQ(map.begin()->first, "a");
  EXPECT_TRUE(map.erase("a"));
  EXPECT_FALSE(map.erase("a"));
  EXPECT_EQ(map.size(), 1u);
}

TEST(LruMap, PeekingIsNoUse) {
  LruMap<int, int> map(2);
  map.find_or_make(1, [] { return 1; });
  map.find_or_make(2, [] { return 2; });
  EXPECT_EQ(*map.peek(1), 1);
  map.find_or_make(3, [] { return 3; });
  EXPECT_EQ(map.peek(1), nullptr);
}

}  // namespace
}  // namespace signalbox
