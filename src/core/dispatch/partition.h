// SPDX-License-Identifier: Apache-2.0
// How many of those who wait, in their order, should share the next pass. Everybody who still waits
// pays for the length of each pass, so one long prompt costs little alone and much in front of many
// short ones. Pure.
#pragma once

#include <span>
#include <vector>

#include "core/dispatch/pass.h"

namespace signalbox::dispatch {

class Partition {
 public:
  // Cuts the line into passes so that Σ over passes of (who waits during it)·(its length) is least,
  // and tells how many the first one takes: 1 to line.size(), which is not empty. A pass's length
  // is the instance's overhead and the larger of its longest passenger's part within one chunk and
  // the mean over the ranks. O(n²).
  std::size_t first_pass(std::span<const Passenger> line, const Instance& instance);

 private:
  std::vector<double> cost_;  // of the line from here on
};

}  // namespace signalbox::dispatch
