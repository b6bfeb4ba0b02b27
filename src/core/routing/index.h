// SPDX-License-Identifier: Apache-2.0
// The places of one bucket in blocks of eight, in a tree of component-wise minima: a k-d tree in
// implicit layout, whose order is renewed a slice at a time. The order affects only how much a
// search prunes; the minima hold after every call.
#pragma once

#include <array>
#include <cstdint>
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
  kStepNow,
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
using Drains = double __attribute__((vector_size(32)));
inline constexpr std::int64_t kShortOutput = 128;
inline constexpr std::int64_t kLongOutput = 1024;

struct Point {
  std::array<float, kCoordinates> at{};
  double drain = -1e18;  // when the queued prefill is through, seconds since the clock's origin
};
// A place that takes nothing: infinitely far away.
Point closed_point();

class Index {
 public:
  static constexpr std::uint32_t kFan = 8;
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;

  // Lane i of row r is coordinate r of the i-th child: a place, or the minima of a block below.
  struct alignas(64) Block {
    Lanes row[kCoordinates][2];
    Drains drain[2];
  };

  // Appends; returns the position. `owner` comes back from the search.
  std::uint32_t insert(std::uint32_t owner, const Point& point);
  // Fills the gap with the last place; returns the owner that moved to `position`, or kNone.
  std::uint32_t remove(std::uint32_t position);
  // Changes smaller than a hundredth upwards are left out: the bound stays valid.
  void update(std::uint32_t position, const Point& point);
  // Multiplies every arrival rate, for a new base time.
  void scale_arrivals(float factor);

  std::uint32_t size() const { return static_cast<std::uint32_t>(owners_.size()); }
  std::uint32_t owner(std::uint32_t position) const { return owners_[position]; }
  int levels() const { return static_cast<int>(levels_.size()); }
  // Level 0 holds the places; the single block of the last level is the root.
  const Block& block(int level, std::uint32_t number) const {
    return levels_[static_cast<std::size_t>(level)][number];
  }
  Point point(std::uint32_t position) const;

  // One bounded slice of reordering, paid for by updates. `typical` is the request for which
  // neighbours should be alike; `seats[owner]` learns new positions. Costs O(log N) per update,
  // at most O(N) at once.
  struct Typical {
    Constants constants{};
    Share<float> share{};
    float overlap_short = 0;
    float overlap_long = 0;
    float need = 0;
    double now = 0;
  };
  template <typename Moved>
  void reorder_slice(const Typical& typical, Moved&& moved) {
    if (size() <= kFan || !due()) return;
    const auto [low, high] = reorder(typical);
    for (std::uint32_t i = low; i < high; ++i) moved(owners_[i], i);
  }

  // Marks: bit l of a mark says that a place, or one below a block, is of kind l. They serve one
  // search and are forgotten by the next clear_marks().
  void clear_marks();
  void mark(std::uint32_t position, std::uint8_t bit) { marks_[0][position] |= bit; }
  void spread_marks();
  // Marks of the eight children of a block.
  const std::uint8_t* marks(int level, std::uint32_t number) const {
    return &marks_[static_cast<std::size_t>(level)][number * kFan];
  }

 private:
  struct Range {
    std::uint32_t low, high;
  };

  bool due();
  Range reorder(const Typical& typical);
  int widest(const Typical& typical, Range range);
  void write(std::uint32_t position, const Point& point);
  void refit(std::uint32_t number);
  void refit_range(Range range);
  bool refit_block(int level, std::uint32_t number);
  void fit_levels();

  std::vector<std::uint32_t> owners_;
  std::vector<std::vector<Block>> levels_;
  std::vector<std::vector<std::uint8_t>> marks_;

  std::vector<Range> ranges_;  // still to be ordered, breadth first
  std::size_t next_range_ = 0;
  std::int64_t credit_ = 0;

  std::vector<Point> points_;  // scratch of reorder()
  std::vector<std::pair<float, std::uint32_t>> keys_;
};

}  // namespace signalbox::routing
