// SPDX-License-Identifier: Apache-2.0
// Goal: the index answers like a naive one and keeps its invariants under any history. Method: the
// naive index keeps plain maps, recomputes everything and walks whole chains; both get the same
// random calls. In the naive one a (node, endpoint) pair may carry a time of last use; the rule for
// who is evicted next is written down there directly.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/rng.h"
#include "core/cache/chain.h"
#include "core/cache/prefix_index.h"

namespace signalbox::cache {
namespace {

using model::EndpointId;
using model::ModelId;
using model::PromptNode;

constexpr std::int64_t kBlock = 2048;

class NaiveIndex {
 public:
  std::int64_t block_tokens() const {
    return TokenEstimate().tokens(ModelId(1), model::Script::Latin, kBlock);
  }

  void insert(EndpointId e, const std::vector<PromptNode>& chain, Residence residence) {
    for (std::size_t i = 0; i < chain.size(); ++i) {
      const std::uint64_t parent = i == 0 ? 0 : chain[i - 1].hash;
      parent_[chain[i].hash] = parent;
      depth_[chain[i].hash] = i;
      const bool fresh = held_[e].try_emplace(chain[i].hash).second;
      if (fresh) held_[e][chain[i].hash].pending = residence == Residence::Pending;
      if (residence == Residence::Held) held_[e][chain[i].hash].pending = false;
      if (i + 1 < chain.size() && !held_[e].contains(chain[i + 1].hash)) {
        held_[e][chain[i].hash].used.reset();  // from here on its child is the more recent
      }
    }
    held_[e][chain.back().hash].used = ++time_;
    trim(e);
  }
  void withdraw(EndpointId e, const std::vector<PromptNode>& chain) {
    for (auto at = chain.rbegin(); at != chain.rend(); ++at) {
      const auto r = held_[e].find(at->hash);
      if (r == held_[e].end()) continue;
      if (!r->second.pending || has_children(e, at->hash)) return;
      remove_leaf(e, at->hash);
    }
  }
  void evict(EndpointId e, std::uint64_t root) {
    if (!held_[e].contains(root)) return;
    std::vector<std::uint64_t> doomed;
    for (const auto& [hash, residency] : held_[e]) {
      for (std::uint64_t at = hash; at != 0; at = parent_[at]) {
        if (at == root) doomed.push_back(hash);
      }
    }
    for (const std::uint64_t hash : doomed) held_[e].erase(hash);
    const std::uint64_t parent = parent_[root];
    if (parent == 0 || has_children(e, parent) || held_[e][parent].used) return;
    held_[e][parent].used = --oldest_;
  }
  void set_capacity(EndpointId e, std::int64_t tokens) {
    capacity_[e] = tokens;
    trim(e);
  }
  void clear(EndpointId e) { held_[e].clear(); }

  std::int64_t held_tokens(EndpointId e) {
    return static_cast<std::int64_t>(held_[e].size()) * block_tokens();
  }
  std::vector<std::pair<std::int64_t, std::vector<EndpointId>>> levels(
      const std::vector<PromptNode>& chain) {
    std::vector<std::pair<std::int64_t, std::vector<EndpointId>>> out;
    for (std::size_t i = chain.size(); i-- > 0;) {
      std::vector<EndpointId> holders;
      for (const auto& [e, nodes] : held_) {
        if (nodes.contains(chain[i].hash)) holders.push_back(e);
      }
      if (holders.empty() || (!out.empty() && out.back().second == holders)) continue;
      out.emplace_back(static_cast<std::int64_t>(i + 1) * block_tokens(), holders);
    }
    return out;
  }
  std::size_t nodes() const {
    std::set<std::uint64_t> all;
    for (const auto& [e, held] : held_) {
      for (const auto& [hash, residency] : held) all.insert(hash);
    }
    return all.size();
  }

 private:
  struct Residency {
    bool pending = false;
    std::optional<std::int64_t> used;
  };

  bool has_children(EndpointId e, std::uint64_t node) {
    return std::ranges::any_of(held_[e], [&](const auto& r) { return parent_[r.first] == node; });
  }
  void remove_leaf(EndpointId e, std::uint64_t node) {
    const auto used = held_[e][node].used;
    held_[e].erase(node);
    const std::uint64_t parent = parent_[node];
    if (parent == 0 || has_children(e, parent) || held_[e][parent].used) return;
    held_[e][parent].used = used;
  }
  void trim(EndpointId e) {
    while (capacity_[e] > 0 && held_tokens(e) > capacity_[e]) {
      std::uint64_t oldest = 0;
      for (const auto& [hash, r] : held_[e]) {
        if (!r.used) continue;
        if (oldest == 0 || *r.used < *held_[e][oldest].used) oldest = hash;
      }
      if (has_children(e, oldest)) {
        held_[e][oldest].used.reset();
      } else {
        remove_leaf(e, oldest);
      }
    }
  }

  std::map<EndpointId, std::map<std::uint64_t, Residency>> held_;
  std::map<EndpointId, std::int64_t> capacity_;
  std::map<std::uint64_t, std::uint64_t> parent_;
  std::map<std::uint64_t, std::size_t> depth_;
  std::int64_t time_ = 0;
  std::int64_t oldest_ = 0;
};

// Chains over few names share beginnings often.
std::vector<PromptNode> random_chain(Rng& rng, std::uint64_t length_max) {
  std::vector<model::PromptBlock> blocks;
  const std::uint64_t length = 1 + rng.below(length_max);
  for (std::uint64_t i = 0; i < length; ++i) {
    blocks.push_back({rng.chance(0.8) ? 1 : 1 + rng.below(3), kBlock});
  }
  std::vector<PromptNode> nodes;
  chain(Seed{}, {}, blocks, nodes);
  return nodes;
}

Query ask(const std::vector<PromptNode>& nodes) {
  return {ModelId(1), nodes, static_cast<std::int64_t>(nodes.size()) * kBlock,
          model::Script::Latin};
}

void compare(const PrefixIndex& index, NaiveIndex& naive, const std::vector<PromptNode>& nodes) {
  const Match match = index.lookup(ask(nodes));
  const auto levels = naive.levels(nodes);
  RC_ASSERT(match.levels.size() == levels.size());
  for (std::size_t i = 0; i < levels.size(); ++i) {
    RC_ASSERT(match.levels[i].tokens == levels[i].first);
    const auto holders = match.levels[i].holders;
    RC_ASSERT(std::vector<EndpointId>(holders.begin(), holders.end()) == levels[i].second);
  }
}

void one_call(Rng& rng, PrefixIndex& index, NaiveIndex& naive, std::uint64_t length_max) {
  const EndpointId e(1 + static_cast<std::uint32_t>(rng.below(6)));
  const auto nodes = random_chain(rng, length_max);
  switch (rng.below(12)) {
    default: {
      const auto residence = rng.chance(0.5) ? Residence::Pending : Residence::Held;
      index.insert(e, ask(nodes), residence);
      naive.insert(e, nodes, residence);
      break;
    }
    case 0:
    case 1:
      index.withdraw(e, ask(nodes));
      naive.withdraw(e, nodes);
      break;
    case 2:
    case 3: {
      const std::size_t at = rng.below(nodes.size());
      index.evict(e, nodes[at].hash, static_cast<std::uint32_t>(at));
      naive.evict(e, nodes[at].hash);
      break;
    }
    case 4: {
      const auto tokens = static_cast<std::int64_t>(rng.below(60)) * naive.block_tokens();
      index.set_capacity(e, tokens);
      naive.set_capacity(e, tokens);
      break;
    }
    case 5:
      if (rng.chance(0.8)) break;
      index.clear(e);
      naive.clear(e);
      break;
  }
}

RC_GTEST_PROP(PrefixIndexLaw, AnswersLikeTheNaiveIndex, (std::uint64_t seed)) {
  Rng rng(seed, "index");
  const std::uint64_t length_max = 1 + rng.below(60);
  PrefixIndex index{Config{}};
  NaiveIndex naive;
  for (std::uint32_t e = 1; e <= 6; ++e) index.add(EndpointId(e));
  for (int i = 0; i < 120; ++i) {
    one_call(rng, index, naive, length_max);
    compare(index, naive, random_chain(rng, length_max));
    for (std::uint32_t e = 1; e <= 6; ++e) {
      RC_ASSERT(index.held_tokens(EndpointId(e)) == naive.held_tokens(EndpointId(e)));
    }
    RC_ASSERT(index.stats().nodes == naive.nodes());
  }
  for (std::uint32_t e = 1; e <= 6; ++e) index.remove(EndpointId(e));
  RC_ASSERT(index.stats().residencies == 0u);
  RC_ASSERT(index.stats().nodes == 0u);
}

// With learning, corrections and a small memory there is no simple model; the invariants hold.
RC_GTEST_PROP(PrefixIndexLaw, KeepsItsInvariantsUnderEveryCall, (std::uint64_t seed)) {
  Rng rng(seed, "index");
  PrefixIndex index{Config{.index_bytes_max = {1 << 20}, .chain_nodes_max = 200}};
  const std::uint64_t length_max = rng.chance(0.5) ? 20 : 300;
  std::map<EndpointId, std::int64_t> capacity;
  for (std::uint32_t e = 1; e <= 40; ++e) index.add(EndpointId(e));
  for (int i = 0; i < 200; ++i) {
    const EndpointId e(1 + static_cast<std::uint32_t>(rng.below(40)));
    const auto nodes = random_chain(rng, length_max);
    const Query query = ask(nodes);
    const auto tokens = [&] { return static_cast<std::int64_t>(rng.below(nodes.size() * 600)); };
    switch (rng.below(6)) {
      case 0: index.learn(query, tokens()); break;
      case 1: index.observe_cached(e, query, tokens(), tokens()); break;
      case 2: index.set_capacity(e, capacity[e] = tokens()); break;
      case 3: index.withdraw(e, query); break;
      default: index.insert(e, query, rng.chance(0.5) ? Residence::Pending : Residence::Held);
    }
    const auto probe = random_chain(rng, length_max);
    const Match match = index.lookup(ask(probe));
    for (std::size_t k = 0; k + 1 < match.levels.size(); ++k) {
      RC_ASSERT(match.levels[k].tokens >= match.levels[k + 1].tokens);
      RC_ASSERT(match.levels[k].holders.size() < match.levels[k + 1].holders.size());
      RC_ASSERT(std::ranges::includes(match.levels[k + 1].holders, match.levels[k].holders));
    }
    if (!match.levels.empty()) RC_ASSERT(match.levels[0].tokens <= match.prompt_tokens);
    RC_ASSERT(index.stats().bytes <= std::size_t{1} << 20);
  }
  for (std::uint32_t e = 1; e <= 40; ++e) {
    RC_ASSERT(index.held_tokens(EndpointId(e)) >= 0);
    index.clear(EndpointId(e));
    RC_ASSERT(index.held_tokens(EndpointId(e)) == 0);
  }
  RC_ASSERT(index.stats().nodes == 0u);
}

}  // namespace
}  // namespace signalbox::cache
