// SPDX-License-Identifier: Apache-2.0
// Which of several instances a passenger should board: where it is done soonest, and where it makes
// the passes of others least longer. A long prompt makes every pass that it shares as long as a
// chunk, so it belongs where passes are long already. Pure.
#pragma once

#include <span>

#include "core/dispatch/pass.h"

namespace signalbox::dispatch {

// The next pass of an instance that can still be boarded.
struct Berth {
  double begins_in = 0;      // s from now, as predicted
  double pass_seconds = 0;   // that it takes with those who are in it already
  int passes = 0;            // that will be long because of them, this one included
  bool free_rank = true;     // some rank has nothing to do yet
};

// What all who wait, and those still to come, mean for one instance.
struct Crowd {
  double pass_seconds = 0;  // of a pass with this instance's share of those who wait
  double arrivals = 0;      // of those who will wait for it, per second
};

// Of an instance's share of those who come during a long pass, how many wait for its end: the more,
// the more of the other instances go on with long prompts, too; else one of them opens sooner.
// 0.1 to 0.6, found by trial (docs/results/shuttle.md).
double share_that_waits(std::span<const Berth> others);

// Seconds, of everybody: until it has been computed there, and the longer wait of those who come
// meanwhile, who on the mean wait half of each pass: Σ over passes of arrivals·(longer² - pass²)/2.
double berth_cost(const Berth& berth, const Passenger& p, const Instance& instance,
                  const Crowd& crowd);

}  // namespace signalbox::dispatch
