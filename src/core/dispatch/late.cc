// SPDX-License-Identifier: Apache-2.0
// Two comparisons.
#include "core/dispatch/late.h"

#include <algorithm>

namespace signalbox::dispatch {

bool fed(const Config& config, const Feed& feed) {
  if (feed.requests < 2) return false;
  const std::int64_t chunk = std::max<std::int64_t>(1, feed.chunk_tokens);
  const std::int64_t ahead = feed.tokens - feed.head_tokens + std::min(feed.head_tokens, chunk);
  return static_cast<double>(ahead) >= config.passes_ahead * static_cast<double>(chunk);
}

Instant turn(const Config& config, Instant arrival, double prefill_seconds) {
  return arrival + from_seconds(config.cost_weight * prefill_seconds);
}

}  // namespace signalbox::dispatch
