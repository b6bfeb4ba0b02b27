// SPDX-License-Identifier: Apache-2.0
// What will happen, in the order of (time, sequence): at equal times, first come first served.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "base/time.h"

namespace signalbox::sim {

// What is a value that says what happens.
template <typename What>
class EventQueue {
 public:
  struct Item {
    Instant at{};
    std::uint64_t sequence = 0;
    What what{};
  };

  // `at` must not lie before what was popped last.
  void push(Instant at, What what) {
    CHECK(at >= now_);
    heap_.push_back({at, ++sequence_, what});
    std::push_heap(heap_.begin(), heap_.end(), later);
  }
  // Must not be empty.
  Item pop() {
    CHECK(!heap_.empty());
    std::pop_heap(heap_.begin(), heap_.end(), later);
    const Item item = heap_.back();
    heap_.pop_back();
    now_ = item.at;
    return item;
  }
  bool empty() const { return heap_.empty(); }
  std::size_t size() const { return heap_.size(); }

 private:
  static bool later(const Item& a, const Item& b) {
    return a.at != b.at ? a.at > b.at : a.sequence > b.sequence;
  }

  std::vector<Item> heap_;
  std::uint64_t sequence_ = 0;
  Instant now_{};
};

}  // namespace signalbox::sim
