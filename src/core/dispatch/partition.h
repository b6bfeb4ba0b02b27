// SPDX-License-Identifier: Apache-2.0
// How many of those who wait, in their order, should share the next pass. Everybody who still waits
// pays for the length of each pass, so one long prompt costs little alone and much in front of many
// short ones. Pure.
#pragma once

#include <span>
#include <vector>

#include "core/dispatch/pass.h"

namespace signalbox::dispatch {

// The parts of prompts that one pass computes, and how short it can be at best: no shorter than the
// longest; than the mean over the ranks; and, for every k, than k+1 times the (k·ranks+1)-th
// longest, since of that many some rank has k+1 (nine alike on eight ranks take as long as two
// each). Graham, "Bounds on multiprocessing timing anomalies", 1969.
class PassBound {
 public:
  void clear() { parts_.clear(), sum_ = 0; }
  // `part` of it, at most `whole`, is computed in this pass; the rest burdens the ranks later.
  void add(double part, double whole);
  double seconds(std::size_t ranks) const;  // beyond the pass's overhead

 private:
  std::vector<double> parts_;  // the longest first
  double sum_ = 0;
};

class Partition {
 public:
  // Cuts the line into passes so that Σ over passes of (who waits during it)·(its length) is least,
  // and tells how many the first one takes: 1 to line.size(), which is not empty. A pass's length
  // is the instance's overhead and its bound; none takes more than the ranks' chunks but by the one
  // who exceeds them. O(n·passengers of a pass).
  std::size_t first_pass(std::span<const Passenger> line, const Instance& instance);

 private:
  std::vector<double> cost_;  // of the line from here on
  PassBound pass_;
};

}  // namespace signalbox::dispatch
