// SPDX-License-Identifier: Apache-2.0
// From the end of the line to its front: the best cut of what follows is known.
#include "core/dispatch/partition.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "base/check.h"

namespace signalbox::dispatch {

void PassBound::add(double part, double whole) {
  parts_.insert(std::ranges::upper_bound(parts_, part, std::greater<>{}), part);
  sum_ += whole;
}

double PassBound::seconds(std::size_t ranks) const {
  double least = sum_ / static_cast<double>(ranks);
  for (std::size_t k = 0; k * ranks < parts_.size(); ++k) {
    least = std::max(least, static_cast<double>(k + 1) * parts_[k * ranks]);
  }
  return least;
}

std::size_t Partition::first_pass(std::span<const Passenger> line, const Instance& instance) {
  CHECK(!line.empty());
  const std::size_t ranks = instance.ranks.size();
  const double room = instance.chunk_tokens * static_cast<double>(ranks);
  const std::size_t n = line.size();
  cost_.assign(n + 1, 0);
  std::size_t first = n;
  for (std::size_t from = n; from-- > 0;) {
    const auto waiting = static_cast<double>(n - from);
    double tokens = 0;
    pass_.clear();
    cost_[from] = std::numeric_limits<double>::infinity();
    for (std::size_t to = from; to < n && tokens < room; ++to) {
      const Passenger& p = line[to];
      const double whole = p.least_seconds();
      const double share = std::min(1.0, instance.chunk_tokens / p.least_tokens());
      pass_.add(whole * share, whole);
      tokens += p.least_tokens() * share;
      const double cost =
          waiting * (instance.overhead_seconds + pass_.seconds(ranks)) + cost_[to + 1];
      if (cost >= cost_[from]) continue;
      cost_[from] = cost;
      first = to + 1 - from;
    }
  }
  return first;
}

}  // namespace signalbox::dispatch
