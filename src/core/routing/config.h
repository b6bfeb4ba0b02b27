// SPDX-License-Identifier: Apache-2.0
// Settings of routing. The score itself has no weights here: w and seconds per USD come with each
// request's objective.
#pragma once

#include <cstdint>

#include "base/describe.h"
#include "base/time.h"

namespace signalbox::routing {

struct Config {
  double tie_band = 0.02;
  int near_ties_wanted = 4;
  Duration arrivals_window = std::chrono::seconds(60);
  double utilisation_max = 0.9;
  Duration stale_after = std::chrono::seconds(5);
  double stale_uncertainty = 0.1;
  double uncertainty_max = 1.0;
  int concurrency_default = 64;
  std::int64_t in_flight_max = 1 << 20;
};

template <typename Visitor>
void describe(Visitor& v, Config& c) {
  v(c.tie_band, "tie_band",
    "Places whose score is within this share of the best count as tied; two of them are drawn and "
    "the better one is taken, so that gateways with the same view do not stampede.",
    Range{0, 1});
  v(c.near_ties_wanted, "near_ties_wanted",
    "Tied places that the search looks for before it stops at the best.", Range{1, 16});
  v(c.arrivals_window, "arrivals_window",
    "Decay time of the arrival rate of an endpoint and of the fleet's utilisation.",
    Range{1, 3600});
  v(c.utilisation_max, "utilisation_max",
    "Highest utilisation that the price of delaying a busy fleet assumes.", Range{0, 0.99});
  v(c.stale_after, "stale_after",
    "Age at which an engine's metrics begin to widen the uncertainty of its predictions.",
    Range{0.1, 3600});
  v(c.stale_uncertainty, "stale_uncertainty",
    "Relative uncertainty added when metrics are stale, and again for each further such age.",
    Range{0, 1});
  v(c.uncertainty_max, "uncertainty_max", "Highest relative uncertainty reported.", Range{0, 10});
  v(c.concurrency_default, "concurrency_default",
    "Requests at once on an endpoint whose limit nobody tells.", Range{1, 1e6});
  v(c.in_flight_max, "in_flight_max", "Requests in flight that the load of the fleet can hold.",
    AtStart{{1024, 1e8}});
}

}  // namespace signalbox::routing
