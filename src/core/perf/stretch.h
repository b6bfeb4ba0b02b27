// SPDX-License-Identifier: Apache-2.0
// How much longer answers take than the decode steps that were foreseen when they began: prompts
// that arrive meanwhile hold them up, others join the batch or leave it. Nobody knows those
// beforehand, so they are no part of what is known of a place and move no placement; who arrives
// pays for holding up others. What is predicted must reckon with them: with the median of what
// happened to answers that had as many others beside them. Pure, bounded, O(1); one of a pool.
#pragma once

#include <vector>

#include "base/decayed_quantile.h"

namespace signalbox::perf {

class Stretch {
 public:
  Stretch();

  // An answer took `actual` seconds after its first token; `foreseen` > 0 seconds for as many
  // tokens, when `others` >= 0 requests were in flight at its endpoint.
  void observe(double others, double foreseen, double actual);

  // Actual over foreseen; 1 until something was observed.
  double median(double others) const;

 private:
  std::vector<DecayedQuantile> ratios_;  // by number of others, ever more to a class
};

}  // namespace signalbox::perf
