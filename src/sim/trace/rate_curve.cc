// SPDX-License-Identifier: Apache-2.0
// Finds the line of a time.
#include "sim/trace/rate_curve.h"

#include <algorithm>
#include <cmath>

namespace signalbox::trace {
namespace {

bool repeats(const RateCurve& curve) {
  return curve.period > Duration::zero() && curve.period > curve.points.back().at;
}

// Within the first period.
Stretch line_at(const RateCurve& curve, Duration time) {
  const auto after =
      std::upper_bound(curve.points.begin(), curve.points.end(), time,
                       [](Duration wanted, const RatePoint& point) { return wanted < point.at; });
  const bool ends = after == curve.points.end();
  const Duration end = repeats(curve) ? curve.period : kEver;
  if (after == curve.points.begin()) return {after->at, after->rate, after->rate};
  const RatePoint& from = *(after - 1);
  if (ends || curve.between == RateCurve::Between::Step) {
    return {ends ? end : after->at, from.rate, from.rate};
  }
  const double part = to_seconds(time - from.at) / to_seconds(after->at - from.at);
  return {after->at, from.rate + (after->rate - from.rate) * part, after->rate};
}

}  // namespace

Stretch stretch_at(const RateCurve& curve, Duration time) {
  if (curve.points.empty()) return {kEver, 1, 1};
  Duration begun{};
  if (repeats(curve)) begun = time / curve.period * curve.period;
  Stretch line = line_at(curve, time - begun);
  if (line.until != kEver) line.until = begun > kEver - line.until ? kEver : line.until + begun;
  return line;
}

double mean_of(const RateCurve& curve) {
  if (curve.points.empty()) return 1;
  const Duration end = repeats(curve) ? curve.period : curve.points.back().at;
  if (end <= Duration::zero()) return curve.points.back().rate;
  double sum = 0;
  for (Duration at{}; at < end;) {
    const Stretch line = stretch_at(curve, at);
    const Duration until = std::min(line.until, end);
    sum += to_seconds(until - at) * (line.rate + line.rate_end) / 2;
    at = until;
  }
  return sum / to_seconds(end);
}

double seconds_until(double rate, double rate_end, double length, double amount) {
  const double slope = (rate_end - rate) / length;
  const double root = std::sqrt(std::max(0.0, rate * rate + 2 * slope * amount));
  return std::min(length, 2 * amount / (rate + root));
}

}  // namespace signalbox::trace
