// SPDX-License-Identifier: Apache-2.0
// From the end of the line to its front: the best cut of what follows is known.
#include "core/dispatch/partition.h"

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace signalbox::dispatch {

std::size_t Partition::first_pass(std::span<const Passenger> line, const Instance& instance) {
  CHECK(!line.empty());
  const auto ranks = static_cast<double>(instance.ranks.size());
  const std::size_t n = line.size();
  cost_.assign(n + 1, 0);
  std::size_t first = n;
  for (std::size_t from = n; from-- > 0;) {
    const auto waiting = static_cast<double>(n - from);
    double longest = 0, sum = 0;
    cost_[from] = std::numeric_limits<double>::infinity();
    for (std::size_t to = from; to < n; ++to) {
      const Passenger& p = line[to];
      const double whole = p.least_seconds();
      longest = std::max(longest, whole * std::min(1.0, instance.chunk_tokens / p.least_tokens()));
      sum += whole;
      const double length = instance.overhead_seconds + std::max(longest, sum / ranks);
      const double cost = waiting * length + cost_[to + 1];
      if (cost >= cost_[from]) continue;
      cost_[from] = cost;
      first = to + 1 - from;
    }
  }
  return first;
}

}  // namespace signalbox::dispatch
