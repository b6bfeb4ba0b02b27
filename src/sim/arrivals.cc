// SPDX-License-Identifier: Apache-2.0
// Gaps of mean 1 on a clock that runs at the rate of the moment: line by line of the curve, burst
// by burst.
#include "sim/arrivals.h"

#include <algorithm>

namespace signalbox::sim {
namespace {

// Who has not come by then does not come (31 years).
constexpr Duration kEnd = std::chrono::seconds(1'000'000'000);

bool has_bursts(const Bursts& bursts) {
  return bursts.on > Duration::zero() && bursts.off > Duration::zero();
}

}  // namespace

ArrivalProcess::ArrivalProcess(const Arrivals& arrivals, double per_second, std::uint64_t seed)
    : gaps_(trace::gaps_of_cv(arrivals.cv)),
      curve_(arrivals.curve), per_second_(per_second), bursts_(arrivals.bursts),
      gaps_rng_(seed, "arrivals"),
      bursts_rng_(seed, "bursts"),
      over_(curve_.period > Duration::zero() && trace::mean_of(curve_) <= 0) {
  if (!has_bursts(bursts_)) return;
  const double on = to_seconds(bursts_.on);
  const double off = to_seconds(bursts_.off);
  per_second_ *= (on + off) / (on + bursts_.quiet * off);
  on_ = !bursts_rng_.chance(on / (on + off));
  toggle_at_ = Duration::zero();
  toggle();
}

void ArrivalProcess::toggle() {
  on_ = !on_;
  const double mean = to_seconds(on_ ? bursts_.on : bursts_.off);
  toggle_at_ += std::max(Duration(1), from_seconds(bursts_rng_.exponential(mean)));
}

double ArrivalProcess::level() const { return per_second_ * (on_ ? 1 : bursts_.quiet); }

Duration ArrivalProcess::next() {
  double amount = begun_ ? trace::draw_gap(gaps_, gaps_rng_) : trace::draw_rest(gaps_, gaps_rng_);
  begun_ = true;
  while (!over_ && at_ < kEnd) {
    const trace::Stretch line = trace::stretch_at(curve_, at_);
    const Duration until = std::min({line.until, toggle_at_, kEnd});
    const double length = to_seconds(until - at_);
    const double part = line.until == trace::kEver ? 0 : length / to_seconds(line.until - at_);
    const double rate = line.rate * level();
    const double rate_end = (line.rate + (line.rate_end - line.rate) * part) * level();
    const double area = length * (rate + rate_end) / 2;
    if (area > amount) {
      at_ += from_seconds(trace::seconds_until(rate, rate_end, length, amount));
      return at_;
    }
    amount -= area;
    at_ = until;
    if (at_ == toggle_at_) toggle();
  }
  over_ = true;
  return trace::kEver;
}

}  // namespace signalbox::sim
