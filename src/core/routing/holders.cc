// SPDX-License-Identifier: Apache-2.0
// What the search knows of the prompt's prefix: costs per level of the match, and who holds it.
#include <algorithm>
#include <bit>

#include "core/routing/search.h"

namespace signalbox::routing {
namespace {

constexpr std::size_t kDirectMax = 16;    // holders that are scored without any bound
// So few holders are marked one by one; more in bulk, at the cost of a look at all nodes.
constexpr std::size_t kMarkEachMax = 150;
constexpr std::size_t kMarksMax = 8;

bool holds(const cache::Level& level, model::EndpointId id) {
  const auto& holders = level.holders;
  if (holders.empty() || id < holders.front() || holders.back() < id) return false;
  const std::size_t spread = holders.back().value() - holders.front().value() + 1;
  return spread == holders.size() || std::ranges::binary_search(holders, id);
}

Share<float> least(const Share<float>& a, const Share<float>& b) {
  return {std::min(a.fresh, b.fresh), std::min(a.area, b.area), std::min(a.shadow, b.shadow)};
}

}  // namespace

void Search::prepare_levels() {
  auto& costs = state_.levels_;
  levels_ = query_.match == nullptr ? 0 : query_.match->levels.size();
  costs.resize(levels_ + 1);
  for (std::size_t l = 0; l <= levels_; ++l) {
    const float told =
        l < levels_ ? static_cast<float>(query_.match->levels[l].tokens) : 0.0f;
    costs[l].cached = std::clamp(told, 0.0f, decision_.ask.prompt - 1);
    costs[l].share = share(decision_.ask, costs[l].cached);
  }
  costs[levels_].hope = costs[levels_].share;
  for (std::size_t l = levels_; l-- > 0;) costs[l].hope = least(costs[l].share, costs[l + 1].hope);
}

void Search::score_deepest_holders() {
  first_level_ = 0;
  for (; first_level_ < levels_; ++first_level_) {
    const cache::Level& level = query_.match->levels[first_level_];
    if (level.holders.size() > kDirectMax) break;
    for (const model::EndpointId id : level.holders) {
      Seat* seat = state_.find(id);
      if (seat == nullptr || seat->scored_in == number_) continue;
      const Standing wanted = side_ == Side::Open ? Standing::Open : Standing::Ejected;
      if (seat->standing != wanted) continue;
      if (state_.buckets_[seat->bucket]->admitted_in != number_) continue;
      score_seat(*seat, first_level_);
    }
  }
  // A hopeful search is disappointed about places/holders times, each as dear as some ten marks.
  while (first_level_ + marked_ < levels_) {
    const std::size_t holders = query_.match->levels[first_level_ + marked_].holders.size();
    if (holders * holders > 8 * places_ || !mark_next_level()) break;
  }
}

// Marks the holders of the next level in the indices; false if that is not possible or not worth
// it, since nearly all places hold it.
bool Search::mark_next_level() {
  disappointed_ = 0;
  if (marked_ == kMarksMax || first_level_ + marked_ >= levels_) return false;
  if (query_.match->levels[first_level_ + marked_].holders.size() * 4 > places_ * 3) return false;
  if (marked_ == 0) {
    // Marks left in other indices are cleared when it is their turn.
    for (const State::Tree& tree : state_.trees_) tree.index->clear_marks();
  }
  const auto bit = static_cast<std::uint8_t>(1u << marked_);
  const auto& holders = query_.match->levels[first_level_ + marked_].holders;
  const bool each = holders.size() <= kMarkEachMax;
  for (const model::EndpointId id : holders) {
    if (id.value() >= state_.seat_of_.size()) continue;
    const std::uint32_t seat = state_.seat_of_[id.value()];
    if (seat == InFlight::kNone) continue;
    const State::Spot& spot = state_.spots_[seat];
    if (spot.index == nullptr) continue;
    if (each) {
      spot.index->mark(spot.position, bit);
    } else {
      spot.index->mark_place(spot.position, bit);
    }
  }
  for (const State::Tree& tree : state_.trees_) {
    if (!each) tree.index->spread_marks();
  }
  ++marked_;
  return true;
}

// The deepest level that a place with these marks, or one below them, may hold.
std::size_t Search::hoped_level(std::uint8_t marks) const {
  if (marked_ == 0) return first_level_;
  if (marks == 0) return first_level_ + marked_;
  return first_level_ + static_cast<std::size_t>(std::countr_zero(marks));
}

// The deepest level that an endpoint holds; levels_: none. Holders of a level hold all shallower.
std::size_t Search::held_level(model::EndpointId id, std::uint8_t marks) const {
  if (marks != 0) return hoped_level(marks);
  std::size_t low = first_level_ + marked_;
  std::size_t high = levels_;
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    if (holds(query_.match->levels[middle], id)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return high;
}

}  // namespace signalbox::routing
