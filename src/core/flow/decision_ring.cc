// SPDX-License-Identifier: Apache-2.0
// A ring by number; requests are found by walking it, which only people ask for.
#include "core/flow/decision_ring.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>
#include <utility>

namespace signalbox::flow {

void DecisionRing::prepare() const {
  constexpr std::size_t kLine = 64;      // bytes of a cache line
  constexpr std::size_t kCandidates = 4; // more are rare
  constexpr std::size_t kBytes = offsetof(DecisionRecord, decision) +
                                 offsetof(routing::Decision, candidates) +
                                 kCandidates * sizeof(routing::Inputs);
  if (ring_.size() < capacity_) return;
  const DecisionRecord& record = ring_[last_ % capacity_];
  const auto* first = reinterpret_cast<const char*>(&record);
  for (std::size_t at = 0; at < kBytes; at += kLine) __builtin_prefetch(first + at, 1);
  __builtin_prefetch(&record.over, 1);
}

DecisionRecord& DecisionRing::add(const routing::Decision& decision) {
  ++last_;
  if (ring_.size() < capacity_) ring_.emplace_back();
  DecisionRecord& record = ring_[(last_ - 1) % capacity_];
  record.number = last_;
  record.attempt = {};
  record.over = false;
  record.result = model::AttemptResult::Ok;
  record.ttft = record.e2e = Duration(-1);
  record.usage = {};
  // Two kilobytes of candidates, of which mostly a few are used: they are the last member.
  static_assert(std::is_trivially_copyable_v<routing::Decision>);
  std::memcpy(static_cast<void*>(&record.decision), &decision,
              offsetof(routing::Decision, candidates) + decision.count * sizeof(routing::Inputs));
  return record;
}

const DecisionRecord* DecisionRing::find(std::uint64_t number) const {
  if (number == 0 || number > last_) return nullptr;
  const DecisionRecord& record = ring_[(number - 1) % capacity_];
  return record.number == number ? &record : nullptr;
}

DecisionRecord* DecisionRing::find(std::uint64_t number) {
  return const_cast<DecisionRecord*>(std::as_const(*this).find(number));
}

std::vector<const DecisionRecord*> DecisionRing::of(model::RequestId request) const {
  return of(std::span(&request, 1));
}

std::vector<const DecisionRecord*> DecisionRing::of(
    std::span<const model::RequestId> requests) const {
  std::vector<const DecisionRecord*> found;
  for (const DecisionRecord& record : ring_) {
    if (std::ranges::find(requests, record.request) != requests.end()) found.push_back(&record);
  }
  std::sort(found.begin(), found.end(),
            [](const auto* a, const auto* b) { return a->number < b->number; });
  return found;
}

std::vector<const DecisionRecord*> DecisionRing::latest(std::size_t count) const {
  std::vector<const DecisionRecord*> found;
  for (std::uint64_t n = last_; n > 0 && found.size() < count; --n) {
    const DecisionRecord* record = find(n);
    if (record == nullptr) break;
    found.push_back(record);
  }
  return found;
}

}  // namespace signalbox::flow
