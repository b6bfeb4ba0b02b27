// SPDX-License-Identifier: Apache-2.0
// A consistent hash ring: each endpoint stands at many points; a key belongs to the next point
// clockwise whose endpoint may be chosen.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/peers/query.h"

namespace signalbox::peers {

class HashRing {
 public:
  // lightseekorg/smg core/worker_registry.rs, HashRing: 150 virtual nodes a worker.
  static constexpr std::uint64_t kPoints = 150;

  void add(Slot slot, std::uint64_t name);
  void remove(Slot slot);
  // `candidates` is ascending and not empty. Falls back to its first when none stands on the ring.
  Slot find(std::uint64_t key, std::span<const Slot> candidates) const;

 private:
  struct Point {
    std::uint64_t at = 0;
    Slot slot = 0;
  };
  std::vector<Point> points_;  // ascending
};

}  // namespace signalbox::peers
