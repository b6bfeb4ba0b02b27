// SPDX-License-Identifier: Apache-2.0
// Settings of dispatch.
#pragma once

#include "base/describe.h"
#include "base/time.h"

namespace signalbox::dispatch {

struct Config {
  double passes_ahead = 2;
  double cost_weight = 4;
  double home_patience = 2;
  double full_share = 0.9;
  Duration hold_max = std::chrono::milliseconds(500);
  double auto_threshold = 1;
};

template <typename Visitor>
void describe(Visitor& v, Config& c) {
  v(c.passes_ahead, "passes_ahead",
    "Late binding: passes of an engine whose prompts are sent to it, the one that it computes "
    "included; what is beyond them stays here.",
    Range{1, 100});
  v(c.cost_weight, "cost_weight",
    "Seconds of waiting that one second of a request's own prefill is worth in the order of "
    "departure; 0: first come, first served.",
    Range{0, 100});
  v(c.home_patience, "home_patience",
    "How often the dearer prefill elsewhere a request waits for the instance that holds its "
    "prefix.",
    Range{0, 100});
  v(c.full_share, "full_share",
    "Share of a pass's room that waiting prompts must fill to depart without a hold.",
    Range{0, 1});
  v(c.hold_max, "hold_max", "Longest hold of a free instance for a fuller pass.", Range{0, 60});
  v(c.auto_threshold, "auto_threshold",
    "Dispatch `auto`: a pool's requests are held for passes when the wait for one is longer than "
    "this times the wait for the next of all its engines.",
    Range{0.01, 100});
}

}  // namespace signalbox::dispatch
