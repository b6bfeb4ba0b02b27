// SPDX-License-Identifier: Apache-2.0
// Hash table with linear probing and backward-shift deletion, so that churn leaves no tombstones.
#include "core/routing/in_flight.h"

#include <algorithm>

namespace signalbox::routing {

std::int64_t InFlight::Record::remaining() const {
  return std::max({output - tokens, output / 8, std::int64_t{1}});
}

std::size_t InFlight::home(const RequestKey& key) const {
  std::uint64_t x = key.request.value() * 0x9E3779B97F4A7C15ull + key.attempt.value();
  x ^= x >> 32;
  x *= 0xD6E8FEB86659FD93ull;
  x ^= x >> 32;
  return static_cast<std::size_t>(x) & (table_.size() - 1);
}

std::uint32_t InFlight::find(const RequestKey& key) const {
  if (table_.empty()) return kNone;
  for (std::size_t i = home(key); table_[i] != kNone; i = (i + 1) & (table_.size() - 1)) {
    if (records_[table_[i]].key == key) return table_[i];
  }
  return kNone;
}

std::uint32_t InFlight::insert(const Record& record) {
  if (size_ >= limit_ || find(record.key) != kNone) return kNone;
  if (2 * (static_cast<std::size_t>(size_) + 1) > table_.size()) grow();
  std::uint32_t index = 0;
  if (free_.empty()) {
    index = static_cast<std::uint32_t>(records_.size());
    records_.push_back(record);
  } else {
    index = free_.back();
    free_.pop_back();
    records_[index] = record;
  }
  std::size_t i = home(record.key);
  while (table_[i] != kNone) i = (i + 1) & (table_.size() - 1);
  table_[i] = index;
  ++size_;
  return index;
}

void InFlight::erase(std::uint32_t index) {
  const std::size_t mask = table_.size() - 1;
  std::size_t hole = home(records_[index].key);
  while (table_[hole] != index) hole = (hole + 1) & mask;
  for (std::size_t i = (hole + 1) & mask; table_[i] != kNone; i = (i + 1) & mask) {
    const std::size_t wanted = home(records_[table_[i]].key);
    if (((i - wanted) & mask) >= ((i - hole) & mask)) {
      table_[hole] = table_[i];
      hole = i;
    }
  }
  table_[hole] = kNone;
  free_.push_back(index);
  --size_;
}

void InFlight::grow() {
  const std::vector<std::uint32_t> old = std::move(table_);
  table_.assign(std::max<std::size_t>(1024, old.size() * 2), kNone);
  for (const std::uint32_t index : old) {
    if (index == kNone) continue;
    std::size_t i = home(records_[index].key);
    while (table_[i] != kNone) i = (i + 1) & (table_.size() - 1);
    table_[i] = index;
  }
}

void RecordList::append(InFlight& records, std::uint32_t index) {
  InFlight::Record& record = records.at(index);
  record.previous = tail;
  record.next = InFlight::kNone;
  (tail == InFlight::kNone ? head : records.at(tail).next) = index;
  tail = index;
}

void RecordList::insert_by_turn(InFlight& records, std::uint32_t index) {
  InFlight::Record& record = records.at(index);
  std::uint32_t before = tail;
  while (before != InFlight::kNone && records.at(before).turn > record.turn) {
    before = records.at(before).previous;
  }
  std::uint32_t& after = before == InFlight::kNone ? head : records.at(before).next;
  record.previous = before;
  record.next = after;
  (after == InFlight::kNone ? tail : records.at(after).previous) = index;
  after = index;
}

void RecordList::remove(InFlight& records, std::uint32_t index) {
  const InFlight::Record& record = records.at(index);
  (record.previous == InFlight::kNone ? head : records.at(record.previous).next) = record.next;
  (record.next == InFlight::kNone ? tail : records.at(record.next).previous) = record.previous;
}

}  // namespace signalbox::routing
