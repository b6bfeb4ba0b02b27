// SPDX-License-Identifier: Apache-2.0
// The attempts in flight: a pool of records, found by (request, attempt), each a member of one of
// the two lists of its endpoint. Owned by State. Memory is bounded by the limit given to create().
#pragma once

#include <cstdint>
#include <vector>

#include "base/time.h"
#include "core/model/ids.h"

namespace signalbox::routing {

struct RequestKey {
  model::RequestId request;
  model::AttemptId attempt;
  bool operator==(const RequestKey&) const = default;
};

class InFlight {
 public:
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;

  struct Record {
    RequestKey key;
    std::uint32_t seat = 0;        // of its endpoint
    std::uint32_t next = kNone;    // in the endpoint's list: queued, else decoding
    std::uint32_t previous = kNone;
    bool queued = true;            // has no first token yet
    bool plain = false;            // shows nothing before its end
    bool held = false;             // stays here for now; `queued`, too
    Instant turn{};                // its place among those held
    Duration prefill{};            // P as predicted when sent
    std::int64_t fresh = 0;
    std::int64_t cached = 0;
    std::int64_t output = 1;       // expected output tokens
    std::int64_t tokens = 0;       // relayed so far

    // Output expected from here on: the rest, at least an eighth of the mean once it is exceeded.
    std::int64_t remaining() const;
    std::int64_t kv() const { return fresh + cached + tokens; }
  };

  explicit InFlight(std::int64_t limit) : limit_(limit) {}

  // kNone when the limit is reached or the key is known already.
  std::uint32_t insert(const Record& record);
  std::uint32_t find(const RequestKey& key) const;
  void erase(std::uint32_t index);
  Record& at(std::uint32_t index) { return records_[index]; }
  const Record& at(std::uint32_t index) const { return records_[index]; }
  std::int64_t size() const { return size_; }
  bool full() const { return size_ >= limit_; }

 private:
  std::size_t home(const RequestKey& key) const;
  void grow();

  std::int64_t limit_;
  std::int64_t size_ = 0;
  std::vector<Record> records_;
  std::vector<std::uint32_t> free_;
  std::vector<std::uint32_t> table_;  // open addressing, a power of two, at most half full
};

// A doubly linked list through Record::next and previous.
struct RecordList {
  std::uint32_t head = InFlight::kNone;
  std::uint32_t tail = InFlight::kNone;

  void append(InFlight& records, std::uint32_t index);
  // Behind all whose turn is not later. O(those whose turn is later).
  void insert_by_turn(InFlight& records, std::uint32_t index);
  void remove(InFlight& records, std::uint32_t index);
};

}  // namespace signalbox::routing
