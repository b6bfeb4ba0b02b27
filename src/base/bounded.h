// SPDX-License-Identifier: Apache-2.0
// Containers that cannot grow without end: BoundedQueue refuses when full, RingBuffer forgets the
// oldest, LruMap forgets the longest unused. Memory grows with use up to the limit. One thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <list>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/check.h"

namespace signalbox {

// First in, first out. O(1); storage doubles up to the limit and is then reused.
template <typename T>
class BoundedQueue {
 public:
  explicit BoundedQueue(std::size_t limit) : limit_(limit) {}

  // False, and nothing changes, when the queue is full.
  [[nodiscard]] bool push(T value) {
    if (size_ == limit_) return false;
    if (size_ == slots_.size()) grow();
    slots_[slot(size_)].emplace(std::move(value));
    ++size_;
    return true;
  }
  // Precondition of front and pop: not empty.
  T& front() { return (*this)[0]; }
  const T& front() const { return (*this)[0]; }
  T pop() {
    T value = std::move(front());
    slots_[head_].reset();
    head_ = slot(1);
    --size_;
    return value;
  }
  // The i-th from the front, i < size().
  T& operator[](std::size_t i) {
    CHECK(i < size_);
    return *slots_[slot(i)];
  }
  const T& operator[](std::size_t i) const {
    CHECK(i < size_);
    return *slots_[slot(i)];
  }
  void clear() {
    while (size_ > 0) pop();
  }

  std::size_t size() const { return size_; }
  std::size_t limit() const { return limit_; }
  bool empty() const { return size_ == 0; }
  bool full() const { return size_ == limit_; }

 private:
  std::size_t slot(std::size_t i) const {
    const std::size_t at = head_ + i;
    return at < slots_.size() ? at : at - slots_.size();
  }
  void grow() {
    std::vector<std::optional<T>> larger(std::min(limit_, slots_.size() * 2 + 8));
    for (std::size_t i = 0; i < size_; ++i) larger[i] = std::move(slots_[slot(i)]);
    slots_ = std::move(larger);
    head_ = 0;
  }

  std::size_t limit_;
  std::vector<std::optional<T>> slots_;
  std::size_t head_ = 0;
  std::size_t size_ = 0;
};

// The last `capacity` values; pushing beyond forgets the oldest. capacity must be > 0.
template <typename T>
class RingBuffer {
 public:
  explicit RingBuffer(std::size_t capacity) : capacity_(capacity) { CHECK(capacity > 0); }

  void push(T value) {
    if (values_.size() < capacity_) {
      values_.push_back(std::move(value));
      return;
    }
    values_[oldest_] = std::move(value);
    oldest_ = oldest_ + 1 == capacity_ ? 0 : oldest_ + 1;
  }
  // 0 is the oldest, size() - 1 the newest.
  const T& operator[](std::size_t i) const {
    CHECK(i < values_.size());
    const std::size_t at = oldest_ + i;
    return values_[at < values_.size() ? at : at - values_.size()];
  }
  const T& newest() const { return (*this)[values_.size() - 1]; }
  // The values in no particular but reproducible order, for statistics.
  const std::vector<T>& unordered() const { return values_; }
  void clear() {
    values_.clear();
    oldest_ = 0;
  }

  std::size_t size() const { return values_.size(); }
  std::size_t capacity() const { return capacity_; }
  bool empty() const { return values_.empty(); }

 private:
  std::size_t capacity_;
  std::vector<T> values_;
  std::size_t oldest_ = 0;
};

// A map of at most `limit` keys; a new key beyond that evicts the one touched longest ago. O(1).
// Order of use, and so of eviction, depends on the calls alone, never on hashes.
template <typename K, typename V, typename Hash = std::hash<K>>
class LruMap {
 public:
  explicit LruMap(std::size_t limit) : limit_(limit) { CHECK(limit > 0); }
  // The index points into the list, so a copy would point into the original.
  LruMap(const LruMap&) = delete;
  LruMap& operator=(const LruMap&) = delete;
  LruMap(LruMap&&) = default;
  LruMap& operator=(LruMap&&) = default;

  // Null when absent. find() counts as use, peek() does not. Valid until the key is evicted.
  V* find(const K& key) {
    const auto at = index_.find(key);
    if (at == index_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, at->second);
    return &at->second->second;
  }
  const V* peek(const K& key) const {
    const auto at = index_.find(key);
    return at == index_.end() ? nullptr : &at->second->second;
  }
  // The value of `key`, made by make() when absent.
  template <typename Make>
  V& find_or_make(const K& key, Make make) {
    if (V* value = find(key)) return *value;
    if (entries_.size() == limit_) {
      index_.erase(entries_.back().first);
      entries_.pop_back();
    }
    entries_.emplace_front(key, make());
    index_.emplace(key, entries_.begin());
    return entries_.front().second;
  }
  bool erase(const K& key) {
    const auto at = index_.find(key);
    if (at == index_.end()) return false;
    entries_.erase(at->second);
    index_.erase(at);
    return true;
  }

  // Most recently used first.
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }
  std::size_t size() const { return entries_.size(); }
  std::size_t limit() const { return limit_; }

 private:
  using Entries = std::list<std::pair<K, V>>;
  std::size_t limit_;
  Entries entries_;
  std::unordered_map<K, typename Entries::iterator, Hash> index_;
};

}  // namespace signalbox
