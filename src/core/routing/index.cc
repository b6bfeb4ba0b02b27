// SPDX-License-Identifier: Apache-2.0
// Blocks, minima and marks. The order of places is renewed in reorder.cc.
#include "core/routing/index.h"

#include <cstring>
#include <limits>

#include "base/check.h"

namespace signalbox::routing {
namespace {

constexpr float kFar = std::numeric_limits<float>::infinity();

Index::Block empty_block() {
  Index::Block block;
  for (auto& row : block.row) row[0] = row[1] = Lanes{kFar, kFar, kFar, kFar};
  for (Drains& half : block.drain) half = Drains{kFar, kFar, kFar, kFar};
  return block;
}

}  // namespace

Point closed_point() {
  Point point;
  point.at.fill(kFar);
  point.drain = kFar;
  return point;
}

std::uint32_t Index::insert(std::uint32_t owner, const Point& point) {
  const std::uint32_t position = size();
  owners_.push_back(owner);
  fit_levels();
  write(position, point);
  refit(position / kFan);
  ranges_.clear();
  return position;
}

std::uint32_t Index::remove(std::uint32_t position) {
  CHECK(position < size());
  const std::uint32_t last = size() - 1;
  const std::uint32_t moved = position == last ? kNone : owners_[last];
  if (moved != kNone) {
    owners_[position] = moved;
    write(position, point(last));
    refit(position / kFan);
  }
  write(last, closed_point());
  refit(last / kFan);
  owners_.pop_back();
  fit_levels();
  ranges_.clear();
  return moved;
}

void Index::update(std::uint32_t position, const Point& point) {
  const Block& block = levels_[0][position / kFan];
  const std::uint32_t lane = position % kFan;
  bool same = block.drain[lane / 4][lane % 4] <= point.drain &&
              point.drain <= block.drain[lane / 4][lane % 4] + 1e-3;
  for (int r = 0; r < kCoordinates && same; ++r) {
    const float old = block.row[r][lane / 4][lane % 4];
    const float now = point.at[static_cast<std::size_t>(r)];
    same = old <= now && now <= old + 0.01f * (old < 0 ? -old : old);
  }
  ++credit_;
  if (same) return;
  write(position, point);
  refit(position / kFan);
}

void Index::scale_arrivals(float factor) {
  const Lanes far{kFar, kFar, kFar, kFar};
  for (auto& level : levels_) {
    for (Block& block : level) {
      for (Lanes& half : block.row[kArrivals]) half = (half < far) ? half * factor : half;
    }
  }
}

Point Index::point(std::uint32_t position) const {
  const Block& block = levels_[0][position / kFan];
  const std::uint32_t lane = position % kFan;
  Point point;
  for (int r = 0; r < kCoordinates; ++r) {
    point.at[static_cast<std::size_t>(r)] = block.row[r][lane / 4][lane % 4];
  }
  point.drain = block.drain[lane / 4][lane % 4];
  return point;
}

void Index::write(std::uint32_t position, const Point& point) {
  Block& block = levels_[0][position / kFan];
  const std::uint32_t lane = position % kFan;
  for (int r = 0; r < kCoordinates; ++r) {
    block.row[r][lane / 4][lane % 4] = point.at[static_cast<std::size_t>(r)];
  }
  block.drain[lane / 4][lane % 4] = point.drain;
}

// Brings the parents of leaf block `number` up to date; stops where nothing changes.
void Index::refit(std::uint32_t number) {
  for (int level = 0; level + 1 < levels(); ++level, number /= kFan) {
    if (!refit_block(level, number)) return;
  }
}

void Index::refit_range(Range range) {
  std::uint32_t low = range.low / kFan;
  std::uint32_t high = (range.high - 1) / kFan;
  for (int level = 0; level + 1 < levels(); ++level, low /= kFan, high /= kFan) {
    for (std::uint32_t number = low; number <= high; ++number) refit_block(level, number);
  }
}

// Writes the minima of one block into its parent; false if they were there already.
bool Index::refit_block(int level, std::uint32_t number) {
  const Block& block = levels_[static_cast<std::size_t>(level)][number];
  Block& parent = levels_[static_cast<std::size_t>(level) + 1][number / kFan];
  const std::uint32_t lane = number % kFan;
  bool changed = false;
  for (int r = 0; r < kCoordinates; ++r) {
    const Lanes m = at_most(block.row[r][0], block.row[r][1]);
    const float least = std::min(std::min(m[0], m[1]), std::min(m[2], m[3]));
    changed |= parent.row[r][lane / 4][lane % 4] != least;
    parent.row[r][lane / 4][lane % 4] = least;
  }
  double drain = block.drain[0][0];
  for (std::uint32_t i = 1; i < kFan; ++i) drain = std::min(drain, block.drain[i / 4][i % 4]);
  changed |= parent.drain[lane / 4][lane % 4] != drain;
  parent.drain[lane / 4][lane % 4] = drain;
  return changed;
}

// Gives every level its number of blocks; new levels are computed, spare lanes are closed.
void Index::fit_levels() {
  std::size_t blocks = (owners_.size() + kFan - 1) / kFan;
  std::size_t level = 0;
  while (blocks > 0) {
    if (levels_.size() <= level) {
      levels_.emplace_back();
      marks_.emplace_back();
    }
    std::vector<Block>& here = levels_[level];
    const bool fresh = here.empty();
    here.resize(blocks, empty_block());
    marks_[level].resize(blocks * kFan);
    if (fresh && level > 0) {
      const auto below = static_cast<std::uint32_t>(levels_[level - 1].size());
      for (std::uint32_t n = 0; n < below; ++n) refit_block(static_cast<int>(level) - 1, n);
    }
    ++level;
    if (blocks == 1) break;
    blocks = (blocks + kFan - 1) / kFan;
  }
  levels_.resize(level);
  marks_.resize(level);
}

void Index::clear_marks() {
  for (auto& level : marks_) std::ranges::fill(level, std::uint8_t{0});
}

void Index::spread_marks() {
  for (std::size_t level = 0; level + 1 < levels_.size(); ++level) {
    for (std::size_t n = 0; n < levels_[level].size(); ++n) {
      std::uint64_t eight = 0;
      std::memcpy(&eight, &marks_[level][n * kFan], sizeof eight);
      eight |= eight >> 32;
      eight |= eight >> 16;
      eight |= eight >> 8;
      marks_[level + 1][n] = static_cast<std::uint8_t>(eight & 0xFF);
    }
  }
}

}  // namespace signalbox::routing
