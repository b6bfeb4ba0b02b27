// SPDX-License-Identifier: Apache-2.0
// A list in the order of use, and an index of it.
#include "sim/engine/host_tier.h"

namespace signalbox::truth {

void HostTier::store(std::uint64_t hash) {
  if (capacity_ == 0) return;
  if (const auto at = by_hash_.find(hash); at != by_hash_.end()) {
    order_.splice(order_.end(), order_, at->second);
    return;
  }
  if (order_.size() == capacity_) {
    by_hash_.erase(order_.front());
    order_.pop_front();
  }
  by_hash_[hash] = order_.insert(order_.end(), hash);
}

std::size_t HostTier::match(std::span<const std::uint64_t> hashes) const {
  std::size_t found = 0;
  while (found < hashes.size() && by_hash_.contains(hashes[found])) ++found;
  return found;
}

// The last is used first, so that a prefix outlives what stands on it.
std::size_t HostTier::use(std::span<const std::uint64_t> hashes) {
  const std::size_t found = match(hashes);
  for (std::size_t i = found; i > 0; --i) {
    order_.splice(order_.end(), order_, by_hash_.at(hashes[i - 1]));
  }
  return found;
}

void HostTier::clear() {
  order_.clear();
  by_hash_.clear();
}

}  // namespace signalbox::truth
