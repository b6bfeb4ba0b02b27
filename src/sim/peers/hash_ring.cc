// SPDX-License-Identifier: Apache-2.0
// Points by splitmix64's finaliser.
#include "sim/peers/hash_ring.h"

#include <algorithm>

namespace signalbox::peers {
namespace {

std::uint64_t spread(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

}  // namespace

void HashRing::add(Slot slot, std::uint64_t name) {
  for (std::uint64_t i = 0; i < kPoints; ++i) {
    points_.push_back({spread(name + (i + 1) * 0x9E3779B97F4A7C15ull), slot});
  }
  std::sort(points_.begin(), points_.end(), [](const Point& a, const Point& b) {
    return a.at != b.at ? a.at < b.at : a.slot < b.slot;
  });
}

void HashRing::remove(Slot slot) {
  std::erase_if(points_, [&](const Point& p) { return p.slot == slot; });
}

Slot HashRing::find(std::uint64_t key, std::span<const Slot> candidates) const {
  const std::uint64_t at = spread(key);
  const auto from = std::lower_bound(points_.begin(), points_.end(), at,
                                     [](const Point& p, std::uint64_t k) { return p.at < k; });
  const auto start = static_cast<std::size_t>(from - points_.begin());
  for (std::size_t i = 0; i < points_.size(); ++i) {
    const Slot slot = points_[(start + i) % points_.size()].slot;
    if (std::binary_search(candidates.begin(), candidates.end(), slot)) return slot;
  }
  return candidates.front();
}

}  // namespace signalbox::peers
