// SPDX-License-Identifier: Apache-2.0
// The list of free blocks and the hash index, both without allocation per block.
#include "sim/engine/block_cache.h"

#include <algorithm>

#include "base/check.h"

namespace signalbox::truth {

BlockCache::BlockCache(std::uint32_t capacity) : capacity_(capacity), index_(64, kNone) {
  CHECK(capacity > 0);
}

BlockCache::Match BlockCache::match(std::span<const std::uint64_t> hashes, std::size_t most) const {
  Match found;
  for (std::uint64_t hash : hashes.first(std::min(most, hashes.size()))) {
    const Block block = lookup(hash);
    if (block == kNone) break;
    ++found.blocks;
    if (entries_[block].holds == 0) ++found.unheld;
  }
  return found;
}

BlockCache::Block BlockCache::hold(std::uint64_t hash) {
  const Block block = lookup(hash);
  CHECK(block != kNone);
  Entry& entry = entries_[block];
  if (entry.holds++ == 0) {
    unlink(block);
    ++used_;
  }
  return block;
}

BlockCache::Block BlockCache::allocate() {
  CHECK(used_ < capacity_);
  ++used_;
  // Blocks never used come before the cached ones, like the head of a fresh free queue.
  if (entries_.size() < capacity_ && (oldest_ == kNone || entries_[oldest_].published)) {
    entries_.push_back(Entry{.holds = 1});
    return static_cast<Block>(entries_.size() - 1);
  }
  const Block block = oldest_;
  unlink(block);
  Entry& entry = entries_[block];
  if (entry.published) {
    log(CacheEvent::Kind::Removed, entry.hash);
    erase(entry.hash);
    entry.published = false;
  }
  entry.holds = 1;
  return block;
}

void BlockCache::publish(Block block, std::uint64_t hash) {
  Entry& entry = entries_[block];
  CHECK(entry.holds > 0);
  if (entry.published || lookup(hash) != kNone) return;
  entry.hash = hash;
  entry.published = true;
  insert(hash, block);
  log(CacheEvent::Kind::Stored, hash);
}

void BlockCache::release(Block block) {
  Entry& entry = entries_[block];
  CHECK(entry.holds > 0);
  if (--entry.holds > 0) return;
  --used_;
  push(block);
}

void BlockCache::forget() {
  for (Block block = 0; block < entries_.size(); ++block) {
    Entry& entry = entries_[block];
    if (!entry.published) continue;
    entry.published = false;
    if (entry.holds > 0) continue;
    unlink(block);
    push(block);
  }
  std::fill(index_.begin(), index_.end(), kNone);
  index_used_ = 0;
  log(CacheEvent::Kind::Cleared, 0);
}

void BlockCache::push(Block block) {
  Entry& entry = entries_[block];
  if (entry.published) {
    entry.previous = newest_;
    entry.next = kNone;
    (newest_ == kNone ? oldest_ : entries_[newest_].next) = block;
    newest_ = block;
  } else {
    entry.previous = kNone;
    entry.next = oldest_;
    (oldest_ == kNone ? newest_ : entries_[oldest_].previous) = block;
    oldest_ = block;
  }
}

void BlockCache::unlink(Block block) {
  const Entry& entry = entries_[block];
  (entry.previous == kNone ? oldest_ : entries_[entry.previous].next) = entry.next;
  (entry.next == kNone ? newest_ : entries_[entry.next].previous) = entry.previous;
}

std::size_t BlockCache::slot_of(std::uint64_t hash) const {
  return static_cast<std::size_t>((hash * 0x9E3779B97F4A7C15ull) >> 20) & (index_.size() - 1);
}

BlockCache::Block BlockCache::lookup(std::uint64_t hash) const {
  for (std::size_t i = slot_of(hash);; i = (i + 1) & (index_.size() - 1)) {
    const Block block = index_[i];
    if (block == kNone || entries_[block].hash == hash) return block;
  }
}

void BlockCache::insert(std::uint64_t hash, Block block) {
  if ((index_used_ + 1) * 2 > index_.size()) grow();
  std::size_t i = slot_of(hash);
  while (index_[i] != kNone) i = (i + 1) & (index_.size() - 1);
  index_[i] = block;
  ++index_used_;
}

void BlockCache::erase(std::uint64_t hash) {
  const std::size_t mask = index_.size() - 1;
  std::size_t hole = slot_of(hash);
  while (entries_[index_[hole]].hash != hash) hole = (hole + 1) & mask;
  // Shift back whatever would no longer be reached across the hole.
  for (std::size_t i = (hole + 1) & mask; index_[i] != kNone; i = (i + 1) & mask) {
    const std::size_t home = slot_of(entries_[index_[i]].hash);
    if (((i - home) & mask) < ((i - hole) & mask)) continue;
    index_[hole] = index_[i];
    hole = i;
  }
  index_[hole] = kNone;
  --index_used_;
}

void BlockCache::grow() {
  std::vector<Block> old(index_.size() * 2, kNone);
  old.swap(index_);
  for (Block block : old) {
    if (block == kNone) continue;
    std::size_t i = slot_of(entries_[block].hash);
    while (index_[i] != kNone) i = (i + 1) & (index_.size() - 1);
    index_[i] = block;
  }
}

}  // namespace signalbox::truth
