// SPDX-License-Identifier: Apache-2.0
// Who holds the beginning of which prompt. Runs under the core's lock.
// Keeps: holders(child) ⊆ holders(parent); a node lives while somebody holds it; what an endpoint
// holds fits its capacity; memory fits Config::index_bytes_max.
//
// Cost: a lookup searches the chain with O(log n) rounds of parallel probes for the deepest node
// and once more per level; an insert touches only nodes that the endpoint does not hold yet, and
// evicts about as many as it adds. A node with h holders costs O(h) bytes of memory move to join.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/cache/config.h"
#include "core/cache/match.h"
#include "core/cache/node_table.h"
#include "core/cache/records.h"
#include "core/cache/token_estimate.h"
#include "core/model/ids.h"
#include "core/model/prompt.h"

namespace signalbox::cache {

// A prompt for the index. `chain` is borrowed for the call.
struct Query {
  model::ModelId model{};
  std::span<const model::PromptNode> chain;
  std::int64_t bytes = 0;
  model::Script script = model::Script::Latin;
};
inline Query query(model::ModelId model, const model::Prompt& prompt) {
  return {model, prompt.chain, prompt.bytes, prompt.script};
}

// Pending: sent there, prefill not known to be done. It counts as held, so that a request that
// shares the prefix and comes before the first one's end finds it; withdraw() takes it back.
enum class Residence : std::uint8_t { Pending, Held };

// What was believed of an endpoint's share of a prompt before the prompt was sent there.
struct Belief {
  Belief() = default;
  Belief(std::int64_t tokens) : sure(tokens), hoped(tokens) {}  // NOLINT: one figure for both
  Belief(std::int64_t sure_tokens, std::int64_t hoped_tokens)
      : sure(sure_tokens), hoped(hoped_tokens) {}

  std::int64_t sure = 0;   // tokens of nodes that were held
  std::int64_t hoped = 0;  // of those that were pending as well
};

struct Stats {
  std::size_t nodes = 0;
  std::size_t residencies = 0;         // (node, endpoint) pairs
  std::size_t endpoints = 0;
  std::size_t bytes = 0;               // memory allocated by the index
  std::uint64_t capacity_evictions = 0;  // residencies, since the start
  std::uint64_t memory_evictions = 0;
  std::uint64_t losses_corrected = 0;  // engines that had less than believed
  std::uint64_t gains_corrected = 0;
};

class PrefixIndex {
 public:
  explicit PrefixIndex(const Config& config) : config_(config) {}

  // The endpoint is in the fleet. What is said of endpoints that were never added, or were removed,
  // is ignored: it is late news, and must not bring them back.
  void add(model::EndpointId endpoint);
  // It left the fleet. Clears it first; clear_some() beforehand bounds the work.
  void remove(model::EndpointId endpoint);

  // `out` is reused, so that a lookup need not allocate. Valid until the index changes.
  void lookup(const Query& query, Match& out) const;
  Match lookup(const Query& query) const;

  // The endpoint holds the whole chain and used it just now. Pending at dispatch, Held when the
  // prefill is done (first token, or the end of a plain answer). Any source of knowledge may call.
  // Returns what was believed before, for observe_cached().
  Belief insert(model::EndpointId endpoint, const Query& query, Residence residence);
  // A dispatched request failed before its prefill: takes back what is still pending of its chain.
  void withdraw(model::EndpointId endpoint, const Query& query);
  // The endpoint no longer holds the node with this hash and depth (0 is the first of a chain), nor
  // what follows it. Unknown nodes are ignored. Costs the size of the subtree removed.
  void evict(model::EndpointId endpoint, std::uint64_t hash, std::uint32_t depth);

  // Usage told that the prompt has `prompt_tokens` tokens: the estimate learns, and the chain's
  // deepest node, if held by anybody, is exact from now on.
  void learn(const Query& query, std::int64_t prompt_tokens);
  // The engine found `cached` prompt tokens where `believed` was expected at dispatch. Less than
  // sure: the endpoint loses the deeper nodes. More than hoped: it gains them. Either adapts the
  // capacity we believe in, which so comes to allow for what others keep there. What was only
  // hoped for proves nothing: engines start requests of one burst together. Call learn() before it
  // and insert(Held) after it.
  void observe_cached(model::EndpointId endpoint, const Query& query, const Belief& believed,
                      std::int64_t cached);

  // Tokens of KV cache; 0: unknown, limited by observation only. At most kSlice residencies are
  // evicted in this call, the rest in later ones.
  void set_capacity(model::EndpointId endpoint, std::int64_t tokens);
  // The engine restarted: it holds nothing.
  void clear(model::EndpointId endpoint);
  // As clear(), but at most `residencies` in this call, oldest first. True: nothing is left.
  bool clear_some(model::EndpointId endpoint, std::size_t residencies);

  // Tokens that the endpoint is believed to hold, and the most it is believed to be able to.
  std::int64_t held_tokens(model::EndpointId endpoint) const;
  std::int64_t believed_capacity(model::EndpointId endpoint) const;
  Stats stats() const;

  static constexpr std::size_t kSlice = 1024;

 private:
  struct Found {
    int depth = -1;          // deepest index of the chain; -1: none
    std::uint32_t node = 0;
    std::uint32_t residency = 0;
  };

  std::span<const model::PromptNode> kept(const Query& query) const;
  Found deepest(std::span<const model::PromptNode> chain) const;
  Found deepest_held(std::span<const model::PromptNode> chain, model::EndpointId endpoint) const;
  std::uint32_t next_level(std::span<const model::PromptNode> chain, std::uint32_t node) const;

  std::uint32_t slot_of(model::EndpointId endpoint) const;
  Slot* known(model::EndpointId endpoint);
  const Slot* known(model::EndpointId endpoint) const;

  std::uint32_t step(std::uint32_t slot, std::uint32_t parent, const model::PromptNode& cut,
                     std::uint32_t depth, const Query& query);
  std::uint32_t fresh_node(std::uint32_t parent, const model::PromptNode& cut, std::uint32_t depth,
                           const Query& query);
  Belief belief(std::uint32_t residency) const;
  void confirm(std::uint32_t residency);
  void settle(std::uint32_t node, std::int64_t prompt_tokens);
  void recharge(Node& node);

  void lose(model::EndpointId endpoint, const Query& query, std::int64_t tokens);
  void gain(model::EndpointId endpoint, const Query& query, std::int64_t tokens);
  std::uint32_t touch(std::uint32_t residency);
  bool make_room(std::uint32_t protected_touch, std::size_t holder_bytes);
  bool evict_touch(std::uint32_t touch);
  void evict_over_capacity(Slot& slot, std::size_t residencies);
  void remove_leaf(std::uint32_t residency);
  void remove_subtree(std::uint32_t residency);
  void drop_touch(std::uint32_t touch);

  std::size_t reserved() const;

  Config config_;
  NodeTable table_;
  Records records_;
  TokenEstimate estimate_;
  std::vector<Slot> slots_{1};  // 0: none
  std::vector<std::uint32_t> free_slots_;
  std::unordered_map<model::EndpointId, std::uint32_t> slot_by_id_;  // looked up, never walked
  TouchList everywhere_;
  std::size_t holder_bytes_ = 0;
  Stats counts_;
};

}  // namespace signalbox::cache
