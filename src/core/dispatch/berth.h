// SPDX-License-Identifier: Apache-2.0
// Which of several instances a passenger should board: where it is done soonest, and where it makes
// the passes of others least longer. A long prompt makes every pass that it shares as long as a
// chunk, so it belongs where passes are long already. Pure.
#pragma once

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
  double arrivals = 0;      // per second and instance
};

// Seconds, of everybody: until it has been computed there, and the longer wait of those who come
// meanwhile, who on the mean wait half of each pass: Σ over passes of arrivals·(longer² - pass²)/2.
double berth_cost(const Berth& berth, const Passenger& p, const Instance& instance,
                  const Crowd& crowd);

}  // namespace signalbox::dispatch
