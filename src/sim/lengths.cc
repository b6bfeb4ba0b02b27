// SPDX-License-Identifier: Apache-2.0
// Draws lengths.
#include "sim/lengths.h"

#include <algorithm>
#include <cmath>

namespace signalbox::sim {

std::int64_t draw(const Lengths& lengths, Rng& rng) {
  const double tokens = lengths.quantiles.empty()
                            ? lengths.median * std::exp(lengths.spread * rng.normal())
                            : trace::Quantiles(lengths.quantiles).at(rng.uniform());
  return std::clamp(static_cast<std::int64_t>(std::min(tokens, 1e9)), lengths.least, lengths.most);
}

}  // namespace signalbox::sim
