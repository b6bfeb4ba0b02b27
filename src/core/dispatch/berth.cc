// SPDX-License-Identifier: Apache-2.0
// Sums over the passes that the prompt needs.
#include "core/dispatch/berth.h"

#include <algorithm>
#include <cmath>

namespace signalbox::dispatch {

double share_that_waits(std::span<const Berth> others) {
  if (others.empty()) return 0.6;
  const auto go_on = std::ranges::count_if(others, [](const Berth& b) { return b.passes > 0; });
  return 0.1 + 0.5 * static_cast<double>(go_on) / static_cast<double>(others.size());
}

double berth_cost(const Berth& berth, const Passenger& p, const Instance& instance,
                  const Crowd& crowd) {
  const double tokens = p.least_tokens();
  const int passes =
      std::max(1, static_cast<int>(std::ceil(tokens / instance.chunk_tokens)));
  const double own = instance.overhead_seconds + p.least_seconds() / passes;
  double cost = berth.begins_in;
  for (int i = 0; i < passes; ++i) {
    const double others = i < std::max(1, berth.passes)
                              ? std::max(berth.pass_seconds, crowd.pass_seconds)
                              : crowd.pass_seconds;
    const double longer = std::max(own, others);
    cost += longer + crowd.arrivals * (longer * longer - others * others) / 2;
  }
  return cost;
}

}  // namespace signalbox::dispatch
