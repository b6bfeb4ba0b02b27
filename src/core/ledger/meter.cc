// SPDX-License-Identifier: Apache-2.0
// The arithmetic of shares.
#include "core/ledger/meter.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace signalbox::ledger {
namespace {

constexpr std::int64_t kNanosecondsPerHour = 3'600'000'000'000;

std::int64_t nanodollars(double usd) {
  if (!(usd > 0)) return 0;
  return std::llround(std::min(usd, 1e6) * 1e9);
}

std::uint64_t microseconds(double seconds) {
  if (!(seconds > 1e-6)) return 1;
  return static_cast<std::uint64_t>(std::min(seconds * 1e6, 4294967295.0));
}

}  // namespace

void Splitter::accrue(std::int64_t amount, std::uint64_t weights) {
  open_ += amount;
  earned_ += (static_cast<Wide>(amount) << 64) / weights;
}

std::int64_t Splitter::take(std::uint64_t weight, Wide mark, bool last) {
  std::int64_t share = open_;
  if (last) {
    fraction_ = 0;
  } else {
    const Wide exact = (earned_ - mark) * weight + fraction_;
    share = std::min(open_, static_cast<std::int64_t>(exact >> 64));
    fraction_ = static_cast<std::uint64_t>(exact);
  }
  open_ -= share;
  return share;
}

Meter::Meter(Instant now, double usd_per_hour) : at_(now), price_(nanodollars(usd_per_hour)) {}

void Meter::set_price(double usd_per_hour) { price_ = nanodollars(usd_per_hour); }

Cost Meter::advance(Instant now) {
  if (now <= at_) return {};
  const std::int64_t elapsed = (now - at_).count();
  at_ = now;
  const Wide due = static_cast<Wide>(price_) * static_cast<Wide>(elapsed) +
                   static_cast<Wide>(carry_);
  const auto money = static_cast<std::int64_t>(due / kNanosecondsPerHour);
  carry_ = static_cast<std::int64_t>(due % kNanosecondsPerHour);
  if (count_ == 0) {
    const Cost idle{Duration(elapsed), money};
    idle_ += idle;
    return idle;
  }
  time_.accrue(elapsed, weights_);
  money_.accrue(money, weights_);
  return {};
}

Running Meter::start(double weight_seconds) {
  const std::uint64_t weight = microseconds(weight_seconds);
  weights_ += weight;
  ++count_;
  return {weight, time_.earned(), money_.earned()};
}

Cost Meter::end(const Running& running) {
  CHECK(count_ > 0 && weights_ >= running.weight);
  weights_ -= running.weight;
  const bool last = --count_ == 0;
  return {Duration(time_.take(running.weight, running.time_mark, last)),
          money_.take(running.weight, running.money_mark, last)};
}

}  // namespace signalbox::ledger
