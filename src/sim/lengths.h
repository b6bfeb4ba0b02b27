// SPDX-License-Identifier: Apache-2.0
// How long prompts and answers are. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "base/describe.h"
#include "base/rng.h"
#include "sim/trace/quantiles.h"

namespace signalbox::sim {

// A length in tokens: lognormal, or by its quantiles; always cut to [least, most].
struct Lengths {
  double median = 400;
  double spread = 0.8;  // deviation of the logarithm; 0: all are the median
  std::int64_t least = 1;
  std::int64_t most = 4096;
  std::vector<trace::Quantile> quantiles = {};  // instead of median and spread, if there are any
};

template <typename Visitor>
void describe(Visitor& v, Lengths& c) {
  v(c.median, "median", "Half of the lengths are shorter, in tokens.", Range{0, 1e7});
  v(c.spread, "spread", "Deviation of the logarithm; 0: all are the median.", Range{0, 5});
  v(c.least, "least", "Shorter ones are made this long.", Range{1, 1e7});
  v(c.most, "most", "Longer ones are cut to this.", Range{1, 1e7});
  v(c.quantiles, "quantiles", "Points of the distribution, instead of median and spread.",
    Range{0, 1000});
}

std::int64_t draw(const Lengths& lengths, Rng& rng);

}  // namespace signalbox::sim
