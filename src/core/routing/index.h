// SPDX-License-Identifier: Apache-2.0
// The places of one bucket in a B+-tree with component-wise minima in every node. The order (those
// without a queue first; inside by requests in flight; inside by step time, or by drain time)
// brings places of like cost together, so that minima are tight; they hold whatever the order.
// O(log N) a call.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/routing/formula.h"

namespace signalbox::routing {

// What a bound needs of a place, none of it dependent on the time or the request. Smaller is better
// in every coordinate.
enum Coordinate : int {
  kWaitRest,      // seconds of queued prefill behind the head
  kReach,
  kPrefillB,
  kPrefillC,
  kQueued,        // tokens of queued prefill behind the head
  kPassPerToken,
  kPass,
  kKvUsed,        // minus the free KV tokens
  kRelease,       // seconds until one more KV token is free, when KV is short
  kFit,           // minus the largest prompt + output that fits
  kStepNext,
  kStepE,
  kStepF,
  kInFlight,
  kArrivals,      // per second, without the decay since the base time
  kOverlapShort,  // overlap with kShortOutput tokens
  kOverlapLong,   // overlap with kLongOutput tokens
  kCoordinates
};
inline constexpr std::int64_t kShortOutput = 128;
inline constexpr std::int64_t kLongOutput = 1024;
inline constexpr double kNoQueue = -1e18;

struct Point {
  std::array<float, kCoordinates> at{};
  double drain = kNoQueue;  // when the queued prefill is through, seconds since the clock's origin
};
// A place that takes nothing: infinitely far away.
Point closed_point();

class Index {
 public:
  static constexpr std::uint32_t kFan = 8;
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;
  using Drains = double __attribute__((vector_size(32)));

  // Column i holds the coordinates of a place, or the minima of a child node. Columns beyond the
  // count are infinitely far; columns are in no order.
  struct alignas(64) Node {
    Lanes row[kCoordinates][2];
    Drains drain[2];
    std::uint32_t child[kFan];  // leaf: the owner of the place; else the node
  };

  // Tells an owner its position, whenever it changes.
  using Moved = std::function<void(std::uint32_t owner, std::uint32_t position)>;

  void insert(std::uint32_t owner, const Point& point, const Moved& moved);
  void remove(std::uint32_t position, const Moved& moved);
  // Small changes for the worse are left out: the bounds stay valid.
  void update(std::uint32_t position, const Point& point, const Moved& moved);
  // Multiplies every arrival rate, for a new base time.
  void scale_arrivals(float factor);

  std::uint32_t size() const { return size_; }
  std::uint32_t root() const { return root_; }    // kNone when empty
  int level(std::uint32_t node) const { return links_[node].level; }  // 0: a leaf
  const Node& node(std::uint32_t number) const { return nodes_[number]; }
  std::uint32_t owner(std::uint32_t position) const {
    return nodes_[position / kFan].child[position % kFan];
  }

  // Marks: bit l says that a place, or one below a node, is of kind l. They serve one search.
  // mark() is for a few places; for many, mark_place() each and then spread_marks().
  void clear_marks();
  void mark(std::uint32_t position, std::uint8_t bit);
  void mark_place(std::uint32_t position, std::uint8_t bit) {
    marks_[position / kFan][position % kFan] |= bit;
  }
  void spread_marks();
  const std::uint8_t* marks(std::uint32_t node) const { return marks_[node].data(); }

  // Whether every node's minima, counts and links are as they should be. For tests.
  bool valid() const;

 private:
  struct Links {
    std::array<std::uint64_t, kFan> key{};  // order key: of the place, or least of the child
    std::uint32_t place = 0;  // among the nodes of its level
    std::uint8_t count = 0;
    std::uint8_t level = 0;
  };
  struct Column {
    std::uint64_t key;
    std::uint32_t child;
    Point point;
  };

  std::uint32_t parent(std::uint32_t node) const {
    return above_[node] == kNone ? kNone : above_[node] / kFan;
  }
  std::uint32_t lane(std::uint32_t node) const { return above_[node] % kFan; }
  std::uint32_t new_node(std::uint8_t level);
  void free_node(std::uint32_t node);
  std::uint32_t leaf_for(std::uint64_t key) const;
  Point point(std::uint32_t node, std::uint32_t lane) const;
  Column column(std::uint32_t node, std::uint32_t lane) const;
  Point minima(std::uint32_t node) const;
  std::uint64_t least_key(std::uint32_t node) const;
  void write(std::uint32_t node, std::uint32_t lane, const Point& point);
  void append(std::uint32_t node, const Column& column, const Moved& moved);
  void erase(std::uint32_t node, std::uint32_t lane, const Moved& moved);
  std::uint32_t split(std::uint32_t node, std::uint64_t key, const Moved& moved);
  bool merge(std::uint32_t node, const Moved& moved);
  void refit(std::uint32_t node);

  std::vector<Node> nodes_;
  std::vector<Links> links_;
  std::vector<std::uint32_t> above_;  // a node's position in its parent; kNone: the root
  std::vector<std::array<std::uint8_t, kFan>> marks_;
  std::vector<std::vector<std::uint32_t>> of_level_;  // the nodes of each level
  std::vector<std::uint32_t> free_;
  std::uint32_t root_ = kNone;
  std::uint32_t size_ = 0;
};

}  // namespace signalbox::routing
