// SPDX-License-Identifier: Apache-2.0
// Extendible hashing with linear probing inside a segment; removal shifts back, no tombstones.
#include "core/cache/node_table.h"

#include "base/check.h"

namespace signalbox::cache {

NodeTable::NodeTable() {
  segments_.push_back(std::make_unique<Segment>());
  directory_.assign(2, segments_.back().get());
}

// Hashes of chains are uniform already; small made-up ones become so.
std::uint64_t NodeTable::spread(std::uint64_t hash) { return hash * 0x9E3779B97F4A7C15ull; }

std::uint32_t NodeTable::home(std::uint64_t spread_hash) {
  return static_cast<std::uint32_t>(spread_hash >> 24) % kSlots;
}

std::uint32_t NodeTable::find(std::uint64_t hash, std::uint32_t depth) const {
  const std::uint64_t s = spread(hash);
  const Segment& segment = *directory_[place(s)];
  for (std::uint32_t i = home(s); segment.slots[i].index != 0; i = (i + 1) % kSlots) {
    const Slot& slot = segment.slots[i];
    if (slot.hash == hash) return slot.depth == depth ? slot.index : 0;
  }
  return 0;
}

void NodeTable::prefetch(std::uint64_t hash) const {
  const std::uint64_t s = spread(hash);
  __builtin_prefetch(&directory_[place(s)]->slots[home(s)]);
}

void NodeTable::put(Segment& segment, const Slot& slot) {
  std::uint32_t i = home(spread(slot.hash));
  while (segment.slots[i].index != 0) i = (i + 1) % kSlots;
  segment.slots[i] = slot;
  ++segment.used;
}

bool NodeTable::insert(std::uint64_t hash, std::uint32_t depth, std::uint32_t index) {
  CHECK(index != 0);
  const std::uint64_t s = spread(hash);
  for (;;) {
    Segment& segment = *directory_[place(s)];
    for (std::uint32_t i = home(s); segment.slots[i].index != 0; i = (i + 1) % kSlots) {
      if (segment.slots[i].hash == hash) return false;
    }
    if (segment.used < kUsedMax) {
      put(segment, {hash, index, depth});
      ++size_;
      return true;
    }
    if (!split(s)) return false;
  }
}

bool NodeTable::split(std::uint64_t spread_hash) {
  Segment& old = *directory_[place(spread_hash)];
  if (old.depth == depth_) {
    if (depth_ == kDepthMax) return false;
    std::vector<Segment*> doubled(directory_.size() * 2);
    for (std::size_t i = 0; i < doubled.size(); ++i) doubled[i] = directory_[i / 2];
    directory_ = std::move(doubled);
    ++depth_;
  }
  segments_.push_back(std::make_unique<Segment>());
  Segment& fresh = *segments_.back();
  fresh.depth = ++old.depth;
  const std::array<Slot, kSlots> slots = old.slots;
  old.slots.fill({});
  old.used = 0;
  for (const Slot& slot : slots) {
    if (slot.index == 0) continue;
    const bool upper = (spread(slot.hash) >> (64 - old.depth)) & 1;
    put(upper ? fresh : old, slot);
  }
  // The old segment's entries are contiguous; the upper half goes to the fresh one.
  const std::size_t width = std::size_t{1} << (depth_ - old.depth);
  const std::size_t first = (place(spread_hash) / width | 1) * width;
  for (std::size_t i = first; i < first + width; ++i) directory_[i] = &fresh;
  return true;
}

void NodeTable::erase(std::uint64_t hash) {
  const std::uint64_t s = spread(hash);
  Segment& segment = *directory_[place(s)];
  std::uint32_t hole = home(s);
  while (segment.slots[hole].index != 0 && segment.slots[hole].hash != hash) {
    hole = (hole + 1) % kSlots;
  }
  if (segment.slots[hole].index == 0) return;
  // Whoever follows and may live at the hole or before it moves back into it.
  for (std::uint32_t i = (hole + 1) % kSlots; segment.slots[i].index != 0; i = (i + 1) % kSlots) {
    const std::uint32_t wants = home(spread(segment.slots[i].hash));
    if ((i - wants) % kSlots >= (i - hole) % kSlots) {
      segment.slots[hole] = segment.slots[i];
      hole = i;
    }
  }
  segment.slots[hole] = {};
  --segment.used;
  --size_;
}

std::size_t NodeTable::bytes() const {
  return segments_.size() * sizeof(Segment) + directory_.capacity() * sizeof(Segment*);
}

}  // namespace signalbox::cache
