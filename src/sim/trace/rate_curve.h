// SPDX-License-Identifier: Apache-2.0
// How often something happens, over time: a curve by points. Pure.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "base/describe.h"
#include "base/time.h"

namespace signalbox::trace {

struct RatePoint {
  Duration at{};
  double rate = 0;    // per second, or relative: as the curve's user says
  bool operator==(const RatePoint&) const = default;
};

template <typename Visitor>
void describe(Visitor& v, RatePoint& c) {
  v(c.at, "at", "Time from the start.", Range{0, 1e9});
  v(c.rate, "rate", "Rate from then on, relative to the load's.", Range{0, 1e6});
}

struct RateCurve {
  enum class Between : std::uint8_t { Linear, Step };
  std::vector<RatePoint> points;      // in rising order of time
  Between between = Between::Linear;
  Duration period{};                  // > the last point's time: begins anew; 0: ends as it ends
};

template <typename Visitor>
void describe(Visitor& v, RateCurve& c) {
  v(c.points, "points", "Points of the rate over time, in order; none: constant.",
    Range{0, 100'000});
  v(c.between, "between", "The rate between two points: a line, or a step.");
  v(c.period, "period", "After which the curve begins anew; 0: it stays as it ends.",
    Range{0, 1e9});
}

// A part of the curve that is one line.
struct Stretch {
  Duration until{};                   // kEver: for ever
  double rate = 0;                    // at its beginning
  double rate_end = 0;                // at `until`
};
inline constexpr Duration kEver = Duration::max();

// From `time` (>= 0) on. Before the first point the curve is as there; without points it is 1.
Stretch stretch_at(const RateCurve& curve, Duration time);

// The mean rate over the period; without one, from the start to the last point. 1 without points.
double mean_of(const RateCurve& curve);

// Seconds from the beginning of a line of `length` seconds until `amount` of it has gone by, where
// the whole amounts to more than that: amount < length·(rate + rate_end)/2.
double seconds_until(double rate, double rate_end, double length, double amount);

}  // namespace signalbox::trace

template <>
struct signalbox::EnumNames<signalbox::trace::RateCurve::Between> {
  using Between = trace::RateCurve::Between;
  static constexpr std::pair<Between, std::string_view> values[] = {{Between::Linear, "linear"},
                                                                    {Between::Step, "step"}};
};
