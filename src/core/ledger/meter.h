// SPDX-License-Identifier: Apache-2.0
// Splits the time and the price of one endpoint among the requests that run on it, by weight, with
// O(1) work per start and end: the meter keeps how much one unit of weight has earned so far, and
// a request's share is its weight times what was earned while it ran.
//
// Exact: at every instant, shares handed out + open() + idle() = elapsed time, and = the integral
// of the price, rounded down to nanodollars. Fractions are carried from share to share, so each is
// within a unit of the true one; the last request to leave takes what is open.
#pragma once

#include <cstdint>

#include "base/time.h"
#include "core/ledger/totals.h"

namespace signalbox::ledger {

__extension__ using Wide = unsigned __int128;

// An integer quantity that accrues to weights. Earned per unit of weight has 64 fraction bits.
class Splitter {
 public:
  void accrue(std::int64_t amount, std::uint64_t weights);
  // The share of `weight` since `mark`; all that is open if nobody else is left.
  std::int64_t take(std::uint64_t weight, Wide mark, bool last);
  Wide earned() const { return earned_; }
  std::int64_t open() const { return open_; }

 private:
  Wide earned_ = 0;             // wraps; differences count
  std::int64_t open_ = 0;       // accrued, not taken
  std::uint64_t fraction_ = 0;  // of a unit, carried to the next share
};

// What a running request keeps.
struct Running {
  std::uint64_t weight = 0;
  Wide time_mark = 0;
  Wide money_mark = 0;
};

class Meter {
 public:
  Meter(Instant now, double usd_per_hour);

  // From the time of the last advance() on.
  void set_price(double usd_per_hour);
  // Accounts for the time up to now; an earlier `now` counts as no time. Returns what was idle.
  Cost advance(Instant now);
  // weight_seconds: predicted work; at least a microsecond, at most 4,294 s. Call advance() first.
  Running start(double weight_seconds);
  Cost end(const Running& running);

  int running() const { return count_; }
  Cost open() const { return {Duration(time_.open()), money_.open()}; }
  Cost idle() const { return idle_; }

 private:
  Instant at_;
  std::int64_t price_;          // nanodollars per hour
  std::int64_t carry_ = 0;      // nanodollar-nanoseconds per hour, below one nanodollar
  std::uint64_t weights_ = 0;
  int count_ = 0;
  Splitter time_;
  Splitter money_;
  Cost idle_;
};

}  // namespace signalbox::ledger
