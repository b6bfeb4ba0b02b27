// SPDX-License-Identifier: Apache-2.0
// The answer to "who holds the beginning of this prompt?". A view into the prefix index: valid
// until the index changes next.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/model/ids.h"

namespace signalbox::cache {

// Holders of one node of the chain. Whoever holds a node holds its parents, so the holders of a
// deeper level are among those of every shallower one.
struct Level {
  std::int64_t tokens = 0;                     // prompt tokens up to this node
  std::span<const model::EndpointId> holders;  // ascending
};

// Levels from deep to shallow, strictly growing holder sets: a level that adds no holder to the
// deeper one is left out. Empty: nobody holds anything.
struct Match {
  std::int64_t prompt_tokens = 0;  // of the whole prompt; estimated unless known exactly
  bool exact = false;              // prompt_tokens came from the engine's usage
  std::vector<Level> levels;

  // Prompt tokens that `endpoint` holds; 0 if none. O(levels · log holders).
  std::int64_t cached_tokens(model::EndpointId endpoint) const;
};

}  // namespace signalbox::cache
