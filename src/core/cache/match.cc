// SPDX-License-Identifier: Apache-2.0
// Looks one endpoint up in a match.
#include "core/cache/match.h"

#include <algorithm>

namespace signalbox::cache {

std::int64_t Match::cached_tokens(model::EndpointId endpoint) const {
  for (const Level& level : levels) {
    const auto& holders = level.holders;
    if (std::binary_search(holders.begin(), holders.end(), endpoint)) return level.tokens;
  }
  return 0;
}

}  // namespace signalbox::cache
