// SPDX-License-Identifier: Apache-2.0
// Settings of the prefix index.
#pragma once

#include <cstdint>

#include "base/describe.h"

namespace signalbox::cache {

struct Config {
  Bytes index_bytes_max{256ll << 20};
  std::int64_t chain_nodes_max = 2048;
};

template <typename Visitor>
void describe(Visitor& v, Config& c) {
  v(c.index_bytes_max, "index_bytes_max",
    "Memory of the prefix index; beyond it the least recently used prefixes are forgotten.",
    Range{1 << 18, 1e12});
  v(c.chain_nodes_max, "chain_nodes_max",
    "Cuts of one prompt that the prefix index keeps; deeper ones are ignored.", Range{1, 4096});
}

}  // namespace signalbox::cache
