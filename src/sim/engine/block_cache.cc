// SPDX-License-Identifier: Apache-2.0
// Runs, the list of those that nobody holds, and the index by their first hash.
#include "sim/engine/block_cache.h"

#include <algorithm>

#include "base/check.h"

namespace signalbox::truth {

BlockCache::BlockCache(std::uint32_t capacity) : capacity_(capacity), index_(64) {
  CHECK(capacity > 0);
}

std::uint32_t BlockCache::common(Run run, Hashes hashes) const {
  const std::vector<std::uint64_t>& own = entries_[run].hashes;
  const std::size_t most = std::min(own.size(), hashes.size());
  const auto end = own.begin() + static_cast<std::ptrdiff_t>(most);
  return static_cast<std::uint32_t>(std::mismatch(own.begin(), end, hashes.begin()).first -
                                    own.begin());
}

BlockCache::Match BlockCache::match(Hashes hashes, std::size_t most) const {
  Hashes rest = hashes.first(std::min(most, hashes.size()));
  Match found;
  while (!rest.empty()) {
    const Run run = lookup(rest.front());
    if (run == kNone) break;
    const std::uint32_t blocks = common(run, rest);
    found.blocks += blocks;
    if (entries_[run].holds == 0) found.unheld += blocks;
    rest = rest.subspan(blocks);
  }
  return found;
}

void BlockCache::hold(Hashes hashes, std::uint32_t blocks, Held& held) {
  CHECK(held.blocks_ == 0);
  held.blocks_ = blocks;
  Hashes rest = hashes.first(blocks);
  while (!rest.empty()) {
    Run run = lookup(rest.front());
    CHECK(run != kNone);
    const std::uint32_t shared = common(run, rest);
    if (shared < size(run)) {
      split(run, shared);
      run = lookup(rest.front());
    }
    if (entries_[run].holds++ == 0) {
      unlink(run);
      used_ += shared;
      unheld_ -= shared;
    }
    held.pieces_.push_back({run, shared});
    rest = rest.subspan(shared);
  }
}

void BlockCache::allocate(std::uint32_t blocks, Held& held,
                          std::vector<std::uint64_t>* evicted) {
  CHECK(blocks <= free());
  // Blocks that carry no prefix come before the cached ones, like the head of a fresh free queue.
  const std::uint32_t empty = capacity_ - used_ - unheld_;
  if (blocks > empty) evict(blocks - empty, evicted);
  used_ += blocks;
  held.blank_ += blocks;
  held.blocks_ += blocks;
}

void BlockCache::evict(std::uint32_t blocks, std::vector<std::uint64_t>* evicted) {
  unheld_ -= blocks;
  cached_ -= blocks;
  while (blocks > 0) {
    const Run run = oldest_;
    std::vector<std::uint64_t>& hashes = entries_[run].hashes;
    const std::uint32_t here = std::min(blocks, size(run));
    const std::size_t rest = hashes.size() - here;
    for (std::size_t i = hashes.size(); i > rest; --i) {
      log(CacheEvent::Kind::Removed, hashes[i - 1]);
      if (evicted != nullptr) evicted->push_back(hashes[i - 1]);
    }
    blocks -= here;
    if (rest > 0) {
      hashes.resize(rest);
      continue;
    }
    unlink(run);
    erase(run);
    drop(run);
  }
}

void BlockCache::publish(Hashes hashes, std::uint32_t until, Held& held) {
  Place before;
  for (std::uint32_t i = held.blocks_ - held.blank_; i < until; ++i) {
    const Run own = held.pieces_.empty() ? kNone : held.pieces_.back().run;
    // What follows the end of a run begins one.
    const Place known = own != kNone && entries_[own].findable ? Place{lookup(hashes[i]), 0}
                        : before.run != kNone ? find_next(before, hashes[i])
                                              : find(hashes, i);
    CHECK(held.blank_ > 0);
    --held.blank_;
    before = known;
    if (known.run == kNone) {
      add(hashes[i], held);
      continue;
    }
    if (held.pieces_.empty() || own != kNone) held.pieces_.push_back({});
    ++held.pieces_.back().blocks;
  }
}

// A block that nobody could find so far: at the end of the sequence's last run, if no other
// sequence holds that, else in a new one.
void BlockCache::add(std::uint64_t hash, Held& held) {
  ++cached_;
  log(CacheEvent::Kind::Stored, hash);
  const Run last = held.pieces_.empty() ? kNone : held.pieces_.back().run;
  if (last != kNone && entries_[last].findable && entries_[last].holds == 1) {
    entries_[last].hashes.push_back(hash);
    ++held.pieces_.back().blocks;
    return;
  }
  const Run run = make();
  entries_[run].hashes.push_back(hash);
  entries_[run].holds = 1;
  insert(run);
  held.pieces_.push_back({run, 1});
}

// The run that has a hash begins with it or with one before it in the chain; the nearest such run
// is the only one that can.
BlockCache::Place BlockCache::find(Hashes hashes, std::size_t index) const {
  for (std::size_t i = index + 1; i > 0; --i) {
    const Run run = lookup(hashes[i - 1]);
    if (run == kNone) continue;
    const std::size_t offset = index + 1 - i;
    const std::vector<std::uint64_t>& own = entries_[run].hashes;
    return offset < own.size() && own[offset] == hashes[index] ? Place{run, offset} : Place{};
  }
  return {};
}

BlockCache::Place BlockCache::find_next(Place before, std::uint64_t hash) const {
  const std::vector<std::uint64_t>& own = entries_[before.run].hashes;
  const std::size_t offset = before.offset + 1;
  if (offset < own.size() && own[offset] == hash) return {before.run, offset};
  return {lookup(hash), 0};
}

void BlockCache::release(Held& held) {
  std::uint32_t known_here_alone = held.blank_;
  for (auto piece = held.pieces_.rbegin(); piece != held.pieces_.rend(); ++piece) {
    if (piece->run == kNone) known_here_alone += piece->blocks;
    else release_piece(*piece);
  }
  used_ -= known_here_alone;
  held = Held{};
}

// Later holders may have cut the run that was held; all parts of it are.
void BlockCache::release_piece(const Held::Piece& piece) {
  Run run = piece.run;
  for (std::uint32_t rest = piece.blocks; rest > 0;) {
    CHECK(run != kNone);
    Entry& entry = entries_[run];
    CHECK(entry.holds > 0 && size(run) <= rest);
    rest -= size(run);
    const Run before = entry.before;
    if (--entry.holds == 0) {
      used_ -= size(run);
      if (entry.findable) {
        unheld_ += size(run);
        push(run);
      } else {
        drop(run);
      }
    }
    run = before;
  }
}

void BlockCache::forget() {
  for (Run run = oldest_; run != kNone;) {
    const Run next = entries_[run].next;
    drop(run);
    run = next;
  }
  oldest_ = newest_ = kNone;
  for (Entry& entry : entries_) entry.findable = false;
  std::fill(index_.begin(), index_.end(), Slot{});
  index_used_ = 0;
  unheld_ = 0;
  cached_ = 0;
  log(CacheEvent::Kind::Cleared, 0);
}

BlockCache::Run BlockCache::make() {
  Run run = static_cast<Run>(entries_.size());
  if (spare_.empty()) {
    entries_.emplace_back();
  } else {
    run = spare_.back();
    spare_.pop_back();
  }
  entries_[run].findable = true;
  return run;
}

void BlockCache::drop(Run run) {
  entries_[run] = Entry{};
  spare_.push_back(run);
}

// The first `at` blocks become a run of their own; the end keeps its name, by which it is held.
void BlockCache::split(Run run, std::uint32_t at) {
  const Run head = make();
  Entry& front = entries_[head];
  Entry& back = entries_[run];
  const auto cut = back.hashes.begin() + at;
  erase(run);
  front.hashes.assign(back.hashes.begin(), cut);
  back.hashes.erase(back.hashes.begin(), cut);
  front.before = back.before;
  back.before = head;
  front.holds = back.holds;
  insert(head);
  insert(run);
  if (back.holds > 0) return;
  // The end was released first.
  front.previous = run;
  front.next = back.next;
  (back.next == kNone ? newest_ : entries_[back.next].previous) = head;
  back.next = head;
}

void BlockCache::push(Run run) {
  Entry& entry = entries_[run];
  entry.previous = newest_;
  entry.next = kNone;
  (newest_ == kNone ? oldest_ : entries_[newest_].next) = run;
  newest_ = run;
}

void BlockCache::unlink(Run run) {
  Entry& entry = entries_[run];
  (entry.previous == kNone ? oldest_ : entries_[entry.previous].next) = entry.next;
  (entry.next == kNone ? newest_ : entries_[entry.next].previous) = entry.previous;
}

std::size_t BlockCache::slot_of(std::uint64_t hash) const {
  return static_cast<std::size_t>((hash * 0x9E3779B97F4A7C15ull) >> 20) & (index_.size() - 1);
}

BlockCache::Run BlockCache::lookup(std::uint64_t first) const {
  for (std::size_t i = slot_of(first);; i = (i + 1) & (index_.size() - 1)) {
    const Slot& slot = index_[i];
    if (slot.run == kNone || slot.hash == first) return slot.run;
  }
}

void BlockCache::put(const Slot& slot) {
  std::size_t i = slot_of(slot.hash);
  while (index_[i].run != kNone) i = (i + 1) & (index_.size() - 1);
  index_[i] = slot;
}

void BlockCache::insert(Run run) {
  if ((index_used_ + 1) * 2 > index_.size()) grow();
  put({entries_[run].hashes.front(), run});
  ++index_used_;
}

void BlockCache::erase(Run run) {
  const std::size_t mask = index_.size() - 1;
  std::size_t hole = slot_of(entries_[run].hashes.front());
  while (index_[hole].run != run) hole = (hole + 1) & mask;
  // Shift back whatever would no longer be reached across the hole.
  for (std::size_t i = (hole + 1) & mask; index_[i].run != kNone; i = (i + 1) & mask) {
    const std::size_t home = slot_of(index_[i].hash);
    if (((i - home) & mask) < ((i - hole) & mask)) continue;
    index_[hole] = index_[i];
    hole = i;
  }
  index_[hole] = Slot{};
  --index_used_;
}

void BlockCache::grow() {
  std::vector<Slot> old(index_.size() * 2);
  old.swap(index_);
  for (const Slot& slot : old) {
    if (slot.run != kNone) put(slot);
  }
}

}  // namespace signalbox::truth
