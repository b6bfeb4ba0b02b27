// SPDX-License-Identifier: Apache-2.0
// How much slower or faster than its pool each endpoint is. Observations of one request scatter
// widely, and together: what happens to a pool, such as a burst, makes all of them late. So
// endpoints are compared period by period, each mean with the pool's median of the same time, and
// the factor is the median of these differences over a window of periods, as far as they stand out
// from their own scatter. A shift common to all is the pool's. Pure; one a pool, under its owner's
// lock.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/describe.h"
#include "base/time.h"
#include "core/model/ids.h"

namespace signalbox::perf {

class EndpointFactors {
 public:
  struct Config {
    Duration period = std::chrono::seconds(2);
    int periods = 8;
    int periods_min = 3;
    int observations_min = 5;
    double noise_errors = 3;
    Duration relax_half_life = std::chrono::minutes(5);
    double factor_max = 20;
  };
  static constexpr int kPeriodsMax = 32;

  explicit EndpointFactors(Config config) : config_(config) {}

  // `ratio` is actual over what the pool's coefficients predict, without this factor. O(1), and
  // O(endpoints) at the end of a period.
  void observe(model::EndpointId endpoint, double ratio, Instant now);

  // Multiplies every time of the endpoint. 1 for unknown endpoints, too few periods, the only
  // endpoint of a pool, and a difference that chance explains: else the fleet's work would gather
  // where the noise happened to be kind. Without news it goes back to 1, so that an endpoint which
  // nobody dares to use gets another chance. O(window).
  double factor(model::EndpointId endpoint, Instant now) const;

  // Endpoints with enough periods.
  int judged() const { return judged_; }
  void forget(model::EndpointId endpoint);

 private:
  struct Member {
    model::EndpointId id;
    double sum = 0;              // of this period's log ratios
    int seen = 0;                // in this period
    std::uint32_t periods = 0;   // ended with enough observations
    std::array<float, kPeriodsMax> differences{};  // ring of the latest, by `periods`
    Instant last{};
  };

  void end_period();
  std::span<float> window(const Member& m, std::span<float> room) const;
  bool enough(const Member& m) const;

  Config config_;
  std::vector<Member> members_;
  std::unordered_map<model::EndpointId, std::size_t> index_;
  Instant began_{};              // of the period
  int seen_ = 0;                 // observations in it
  int active_ = 0;               // endpoints that had one
  int judged_ = 0;
};

template <typename Visitor>
void describe(Visitor& v, EndpointFactors::Config& c) {
  v(c.period, "period",
    "Span of time whose observations count as one; longer while there are too few.",
    Range{0.1, 3600});
  v(c.periods, "periods", "Latest periods that the factor of an endpoint is the median of.",
    Range{3, EndpointFactors::kPeriodsMax});
  v(c.periods_min, "periods_min", "Periods of an endpoint before it gets a factor of its own.",
    Range{1, EndpointFactors::kPeriodsMax});
  v(c.observations_min, "observations_min",
    "Observations of an endpoint in a period for the period to count.", Range{1, 255});
  v(c.noise_errors, "noise_errors",
    "Standard errors of that median that an endpoint must differ from its pool by before the "
    "difference counts.",
    Range{0, 10});
  v(c.relax_half_life, "relax_half_life",
    "Time in which the factor of an endpoint without traffic goes half the way back to 1.",
    Range{1, 86'400});
  v(c.factor_max, "factor_max", "Greatest factor of an endpoint; the least is its inverse.",
    Range{1, 1000});
}

}  // namespace signalbox::perf
