// SPDX-License-Identifier: Apache-2.0
// How much slower or faster than its pool each endpoint is: the windowed median of actual over
// predicted time, with the pool's median held at 1, so that a shift common to all is the pool's.
// Pure; one a pool, under its owner's lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/describe.h"
#include "base/time.h"
#include "core/model/ids.h"

namespace signalbox::perf {

class EndpointFactors {
 public:
  struct Config {
    int window_observations = 31;
    int observations_min = 5;
    double shrink_observations = 4;
    double noise_errors = 2;
    Duration relax_half_life = std::chrono::minutes(5);
    double factor_max = 20;
  };

  explicit EndpointFactors(Config config) : config_(config) {}

  // `ratio` is actual over what the pool's coefficients predict, without this factor. O(window).
  void observe(model::EndpointId endpoint, double ratio, Instant now);

  // Multiplies every time of the endpoint. 1 for unknown endpoints, too few observations, the only
  // endpoint of a pool, and a difference that chance explains: else the fleet's work would gather
  // where the noise happened to be kind. Without news it goes back to 1, so that an endpoint which
  // nobody dares to use gets another chance.
  double factor(model::EndpointId endpoint, Instant now) const;

  // Endpoints with enough observations.
  int judged() const { return judged_; }
  void forget(model::EndpointId endpoint);

 private:
  struct Member {
    model::EndpointId id;
    std::vector<float> logs;  // ring of log ratios
    std::size_t next = 0;
    std::uint64_t seen = 0;
    double median = 0;
    double error = 0;  // standard error of the median
    Instant last{};
  };

  void recentre();
  bool enough(const Member& m) const;

  Config config_;
  std::vector<Member> members_;
  std::unordered_map<model::EndpointId, std::size_t> index_;
  double pool_median_ = 0;  // of the members' medians
  int judged_ = 0;
  std::size_t since_recentred_ = 0;
};

template <typename Visitor>
void describe(Visitor& v, EndpointFactors::Config& c) {
  v(c.window_observations, "window_observations",
    "Latest observations of an endpoint that its factor is the median of.", Range{3, 255});
  v(c.observations_min, "observations_min",
    "Observations of an endpoint before it gets a factor of its own.", Range{1, 255});
  v(c.shrink_observations, "shrink_observations",
    "Observations that the belief in an average endpoint is worth.", Range{0, 1000});
  v(c.noise_errors, "noise_errors",
    "Standard errors of its median that an endpoint must differ from its pool by before the "
    "difference counts.",
    Range{0, 10});
  v(c.relax_half_life, "relax_half_life",
    "Time in which the factor of an endpoint without traffic goes half the way back to 1.",
    Range{1, 86'400});
  v(c.factor_max, "factor_max", "Greatest factor of an endpoint; the least is its inverse.",
    Range{1, 1000});
}

}  // namespace signalbox::perf
