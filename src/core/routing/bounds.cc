// SPDX-License-Identifier: Apache-2.0
// Lower bounds of the eight columns of a node: the formula of the score on their minima.
#include <algorithm>
#include <bit>

#include "core/routing/search.h"

namespace signalbox::routing {
namespace {

Share<Lanes> spread(const Share<float>& s) {
  const Lanes any{};
  return {spread_to(any, s.fresh), spread_to(any, s.area), spread_to(any, s.shadow)};
}

}  // namespace

// Writes the children that are worthwhile; returns how many.
std::size_t Search::expand(std::uint32_t tree_number, std::uint32_t number, Children& children) {
  const State::Tree& tree = state_.trees_[tree_number];
  const Index::Node& node = tree.index->node(number);
  const int level = tree.index->level(number);
  const std::uint8_t* marks = marked_ > 0 ? tree.index->marks(number) : nullptr;
  ++decision_.bounded;
  std::size_t count = 0;
  const Lanes zero{};
  Share<Lanes> s = spread(state_.levels_[first_level_].hope);
  for (std::uint32_t half = 0; half < 2; ++half) {
    const auto row = [&node, half](int coordinate) { return node.row[coordinate][half]; };
    for (std::uint32_t i = 0; marks != nullptr && i < 4; ++i) {
      const Share<float>& hope = state_.levels_[hoped_level(marks[half * 4 + i])].hope;
      s.fresh[i] = hope.fresh;
      s.area[i] = hope.area;
      s.shadow[i] = hope.shadow;
    }
    Place<Lanes> p;
    p.wait = at_least(row(kWaitRest),
                      __builtin_convertvector(node.drain[half] - now_seconds_, Lanes));
    p.reach = row(kReach);
    p.b = row(kPrefillB);
    p.c = row(kPrefillC);
    p.queued = row(kQueued);
    p.pass_per_token = row(kPassPerToken);
    p.pass = row(kPass);
    p.kv_wait = at_least(row(kKvUsed) + need_, zero) * row(kRelease);
    p.step_next = row(kStepNext);
    p.e = row(kStepE);
    p.f = row(kStepF);
    p.in_flight = row(kInFlight);
    p.arrivals = row(kArrivals) * decay_;
    p.overlap = row(kOverlapShort) * overlap_short_;
    // Far places are infinite, and infinity times nothing is no number.
    if (overlap_long_ > 0) p.overlap = p.overlap + row(kOverlapLong) * overlap_long_;
    p.money = spread_to(zero, tree.money);
    const Parts<Lanes> parts = predict(constants_, p, s);
    const Lanes limit = spread_to(zero, limit_);
    const auto near = (parts.total < limit) & (row(kFit) + need_ <= zero);
    if ((near[0] | near[1] | near[2] | near[3]) == 0) continue;
    for (std::uint32_t i = 0; i < 4; ++i) {
      if (near[i] == 0 || !worthwhile(parts.violation[i], parts.total[i])) continue;
      const std::uint32_t lane = half * 4 + i;
      const std::uint32_t below = level == 0 ? number * Index::kFan + lane : node.child[lane];
      children[count++] = entry(tree_number, level, below, parts.violation[i], parts.total[i]);
    }
  }
  return count;
}

State::Entry Search::entry(std::uint32_t tree, int level, std::uint32_t number, float violation,
                           float total) const {
  const std::uint64_t tie = ((number * 0x9E3779B97F4A7C15ull >> 32) ^ salt_) & 0xFF;
  const std::uint64_t key =
      static_cast<std::uint64_t>(std::bit_cast<std::uint32_t>(violation)) << 32 |
      std::bit_cast<std::uint32_t>(total);
  const std::uint64_t rest = static_cast<std::uint64_t>(level) << 56 | tie << 48 |
                             static_cast<std::uint64_t>(tree & 0xFFFF) << 32 | number;
  return {key, rest};
}

}  // namespace signalbox::routing
