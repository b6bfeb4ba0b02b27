// SPDX-License-Identifier: Apache-2.0
// A ring by number; requests are found by walking it, which only people ask for.
#include "core/flow/decision_ring.h"

#include <algorithm>
#include <utility>

namespace signalbox::flow {

std::uint64_t DecisionRing::add(DecisionRecord record) {
  record.number = ++last_;
  if (capacity_ == 0) return last_;
  if (ring_.size() < capacity_) ring_.push_back(std::move(record));
  else ring_[(last_ - 1) % capacity_] = std::move(record);
  return last_;
}

const DecisionRecord* DecisionRing::find(std::uint64_t number) const {
  if (number == 0 || number > last_ || ring_.empty()) return nullptr;
  const DecisionRecord& record = ring_[(number - 1) % capacity_ % ring_.size()];
  return record.number == number ? &record : nullptr;
}

DecisionRecord* DecisionRing::find(std::uint64_t number) {
  return const_cast<DecisionRecord*>(std::as_const(*this).find(number));
}

std::vector<const DecisionRecord*> DecisionRing::of(model::RequestId request) const {
  std::vector<const DecisionRecord*> found;
  for (const DecisionRecord& record : ring_) {
    if (record.request == request) found.push_back(&record);
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
