// SPDX-License-Identifier: Apache-2.0
// llm-d's approximate prefix index: per pod an LRU of the blocks that were routed there, as large
// as the pod says its KV cache is.
// Source: llm-d/llm-d-router pkg/epp/framework/plugins/requestcontrol/dataproducer/
// approximateprefix (indexer.go; types.go: autoTune, 16-token blocks, 31,250 blocks when the pod
// tells nothing, at most 131,072 tokens matched).
// Left open: the source touches blocks from the first, so that the first goes first; here a block
// never goes before what stands on it, which finds more. Tokens are exact instead of estimated.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/peers/prefix_lru.h"
#include "sim/peers/rule.h"

namespace signalbox::peers {

class LlmdCache {
 public:
  static constexpr std::int64_t kDefaultTokens = 31'250 * 16;
  static constexpr std::int64_t kMatchMax = 131'072;

  void joined(Slot slot) { index_.limit(slot, kDefaultTokens); }
  void left(Slot slot) { index_.clear(slot); }
  void looked(Slot slot, Fleet fleet) {
    const std::int64_t capacity = fleet[slot].state.kv_capacity_tokens;
    if (capacity > 0 && capacity != index_.limit_of(slot)) index_.limit(slot, capacity);
  }
  void sent(Slot slot, std::span<const Piece> prompt) { index_.touch(slot, prompt); }

  // Matched tokens of each slot, in whole blocks.
  std::span<const std::int64_t> match(const Query& query, Fleet fleet) {
    tokens_.resize(fleet.size());
    index_.match(query.prompt, tokens_);
    for (Slot slot = 0; slot < fleet.size(); ++slot) {
      const std::int64_t block = std::max<std::int64_t>(1, fleet[slot].profile.block_tokens);
      tokens_[slot] = std::min(tokens_[slot], kMatchMax) / block * block;
    }
    return tokens_;
  }

  // Share of the prompt's whole blocks that is matched, 0..1.
  static double share(std::int64_t matched, const Query& query, const Seen& seen) {
    const std::int64_t block = std::max<std::int64_t>(1, seen.profile.block_tokens);
    const std::int64_t whole = std::min(query.tokens, kMatchMax) / block * block;
    return whole > 0 ? static_cast<double>(matched) / static_cast<double>(whole) : 0;
  }

 private:
  PrefixLru index_;
  std::vector<std::int64_t> tokens_;
};

// Looks every 50 ms (llm-d/llm-d-router --refresh-metrics-interval). No retries. Left open: how
// soon a pod is known not to be ready. A container that exits is seen by the kubelet within a
// second or so, a hung one after three probes 10 s apart (Kubernetes' defaults): the former is
// taken for all.
inline Traits llmd_traits() {
  Traits traits;
  traits.look_every = std::chrono::milliseconds(50);
  traits.look_lag_max = std::chrono::milliseconds(5);
  traits.unready_after = std::chrono::seconds(2);
  return traits;
}

}  // namespace signalbox::peers
