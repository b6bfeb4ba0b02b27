// SPDX-License-Identifier: Apache-2.0
// Lookup, insert and what is learnt about sizes. Removal is in prefix_index_evict.cc.
#include "core/cache/prefix_index.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"

namespace signalbox::cache {
namespace {

using Chain = std::span<const model::PromptNode>;

constexpr int kProbes = 8;            // nodes loaded at once in a round of a search
constexpr std::uint32_t kRechargedHolders = 8;
constexpr std::int64_t kTokensMax = std::numeric_limits<std::int32_t>::max();

// Greatest i in [low, high) with holds(i), where holds is true up to some i and false from there
// on, and is known true at `low` (-1 means "before the chain"). Each round looks at up to kProbes
// places; `load` is called for all of them first, so that cache misses overlap.
template <typename Load, typename Holds>
int search(int low, int high, const Load& load, const Holds& holds) {
  while (high - low > 1) {
    const int stride = (high - low + kProbes) / (kProbes + 1);
    int count = 0;
    std::array<int, kProbes> places;
    for (int i = low + stride; i < high && count < kProbes; i += stride) {
      places[static_cast<std::size_t>(count++)] = i;
      load(i);
    }
    while (count-- > 0) {
      const int place = places[static_cast<std::size_t>(count)];
      if (holds(place)) {
        low = place;
        break;
      }
      high = place;
    }
  }
  return low;
}

}  // namespace

Chain PrefixIndex::kept(const Query& query) const {
  return query.chain.first(
      std::min(query.chain.size(), static_cast<std::size_t>(config_.chain_nodes_max)));
}

PrefixIndex::Found PrefixIndex::deepest(Chain chain) const {
  Found found;
  const auto load = [&](int i) { table_.prefetch(chain[static_cast<std::size_t>(i)].hash); };
  const auto there = [&](int i) {
    const std::uint32_t node = table_.find(chain[static_cast<std::size_t>(i)].hash,
                                           static_cast<std::uint32_t>(i));
    if (node == 0) return false;
    found.node = node;
    return true;
  };
  found.depth = search(-1, static_cast<int>(chain.size()), load, there);
  return found;
}

PrefixIndex::Found PrefixIndex::deepest_held(Chain chain, model::EndpointId endpoint) const {
  Found found;
  const auto load = [&](int i) { table_.prefetch(chain[static_cast<std::size_t>(i)].hash); };
  const auto held = [&](int i) {
    const std::uint32_t node = table_.find(chain[static_cast<std::size_t>(i)].hash,
                                           static_cast<std::uint32_t>(i));
    const std::uint32_t residency = node == 0 ? 0 : records_.nodes[node].holders.find(endpoint);
    if (residency == 0) return false;
    found.node = node;
    found.residency = residency;
    return true;
  };
  found.depth = search(-1, static_cast<int>(chain.size()), load, held);
  return found;
}

// The deepest ancestor that more endpoints hold; 0: none. Holder sets of ancestors contain those of
// descendants, so equal sizes mean equal sets.
std::uint32_t PrefixIndex::next_level(Chain chain, std::uint32_t node) const {
  const Node& from = records_.nodes[node];
  const std::uint32_t holders = from.holders.size();
  const auto more = [&](std::uint32_t n) { return records_.nodes[n].holders.size() > holders; };
  // Levels often lie close together, and parents in memory beside their children.
  std::uint32_t at = from.parent;
  for (int i = 0; i < kProbes; ++i) {
    if (at == 0 || more(at)) return at;
    at = records_.nodes[at].parent;
  }
  if (at == 0) return 0;
  const int high = static_cast<int>(records_.nodes[at].depth) + 1;
  std::uint32_t best = 0;
  const auto load = [&](int i) { table_.prefetch(chain[static_cast<std::size_t>(i)].hash); };
  const auto holds = [&](int i) {
    const std::uint32_t n = table_.find(chain[static_cast<std::size_t>(i)].hash,
                                        static_cast<std::uint32_t>(i));
    if (n == 0 || !more(n)) return false;
    best = n;
    return true;
  };
  if (!holds(0)) return 0;
  search(0, high, load, holds);
  return best;
}

void PrefixIndex::lookup(const Query& query, Match& out) const {
  out.levels.clear();
  const Chain chain = kept(query);
  const Found found = deepest(chain);
  if (found.node == 0) {
    out.exact = false;
    out.prompt_tokens = estimate_.tokens(query.model, query.script, query.bytes);
    return;
  }
  const Node& deep = records_.nodes[found.node];
  const std::int64_t rest = std::max<std::int64_t>(0, query.bytes - deep.bytes);
  out.exact = rest == 0 && deep.quality == Quality::Exact &&
              static_cast<std::size_t>(found.depth) + 1 == query.chain.size();
  out.prompt_tokens = deep.tokens + estimate_.tokens(query.model, query.script, rest);
  std::int64_t tokens = deep.tokens;
  for (std::uint32_t at = found.node; at != 0; at = next_level(chain, at)) {
    const Node& node = records_.nodes[at];
    tokens = std::min<std::int64_t>(tokens, node.tokens);
    out.levels.push_back({tokens, node.holders.ids()});
  }
}

Match PrefixIndex::lookup(const Query& query) const {
  Match match;
  lookup(query, match);
  return match;
}

Belief PrefixIndex::insert(model::EndpointId endpoint, const Query& query, Residence residence) {
  const Chain chain = kept(query);
  const std::uint32_t slot = slot_of(endpoint);
  if (slot == 0 || chain.empty() || !make_room(0, 0)) return {};
  const Found found = deepest_held(chain, endpoint);
  const Belief before = belief(found.residency);
  std::uint32_t tip = found.residency;
  std::uint32_t touched = tip == 0 ? 0 : touch(tip);
  std::size_t added = 0;
  for (auto depth = static_cast<std::size_t>(found.depth + 1); depth < chain.size(); ++depth) {
    const std::uint32_t next =
        step(slot, tip, chain[depth], static_cast<std::uint32_t>(depth), query);
    if (next == 0) break;
    Residency& r = records_.residencies[next];
    r.pending = true;  // confirm() goes up through what is pending
    // The touch moves along with the tip, so that no leaf is ever without one.
    if (touched == 0) {
      touched = touch(next);
    } else {
      records_.residencies[tip].touch = 0;
      r.touch = touched;
      records_.touches[touched].residency = next;
    }
    tip = next;
    ++added;
  }
  if (tip == 0) return before;
  if (residence == Residence::Held) confirm(tip);
  evict_over_capacity(slots_[slot], 2 * added + 64);
  return before;
}

Belief PrefixIndex::belief(std::uint32_t residency) const {
  Belief out;
  if (residency == 0) return out;
  out.hoped = records_.nodes[records_.residencies[residency].node].tokens;
  while (residency != 0 && records_.residencies[residency].pending) {
    residency = records_.residencies[residency].parent;
  }
  if (residency != 0) out.sure = records_.nodes[records_.residencies[residency].node].tokens;
  return out;
}

// Adds the next node of a chain to an endpoint that holds its parent. 0: there is no room, or the
// hash belongs to other content.
std::uint32_t PrefixIndex::step(std::uint32_t slot, std::uint32_t parent,
                                const model::PromptNode& cut, std::uint32_t depth,
                                const Query& query) {
  const std::uint32_t keep = parent == 0 ? 0 : records_.residencies[parent].touch;
  std::uint32_t node = table_.find(cut.hash, depth);
  if (!make_room(keep, node == 0 ? 0 : records_.nodes[node].holders.growth())) return 0;
  node = table_.find(cut.hash, depth);  // room may have been made by forgetting it
  const std::uint32_t parent_node = parent == 0 ? 0 : records_.residencies[parent].node;
  if (node == 0) {
    node = fresh_node(parent_node, cut, depth, query);
    if (node == 0) return 0;
  } else if (records_.nodes[node].parent != parent_node) {
    return 0;
  }
  const std::uint32_t added = records_.residencies.take();
  Residency& r = records_.residencies[added];
  r.node = node;
  r.slot = slot;
  r.parent = parent;
  if (parent != 0) {
    Residency& p = records_.residencies[parent];
    r.next = p.first_child;
    if (r.next != 0) records_.residencies[r.next].previous = added;
    p.first_child = added;
  }
  Node& n = records_.nodes[node];
  holder_bytes_ += n.holders.growth();
  n.holders.insert(slots_[slot].endpoint, added);
  slots_[slot].held += n.charge;
  return added;
}

std::uint32_t PrefixIndex::fresh_node(std::uint32_t parent, const model::PromptNode& cut,
                                      std::uint32_t depth, const Query& query) {
  const std::uint32_t index = records_.nodes.take();
  if (!table_.insert(cut.hash, depth, index)) {
    records_.nodes.give_back(index);
    return 0;
  }
  Node& node = records_.nodes[index];
  const std::int64_t bytes_before = parent == 0 ? 0 : records_.nodes[parent].bytes;
  const std::int64_t tokens_before = parent == 0 ? 0 : records_.nodes[parent].tokens;
  node.hash = cut.hash;
  node.bytes = cut.bytes;
  node.parent = parent;
  node.depth = depth;
  const std::int64_t own = estimate_.tokens(query.model, query.script,
                                            std::max<std::int64_t>(0, cut.bytes - bytes_before));
  node.tokens = static_cast<std::int32_t>(std::min(kTokensMax, tokens_before + own));
  node.charge = static_cast<std::int32_t>(
      std::max<std::int64_t>(1, node.tokens - tokens_before));
  return index;
}

void PrefixIndex::confirm(std::uint32_t residency) {
  while (residency != 0 && records_.residencies[residency].pending) {
    records_.residencies[residency].pending = false;
    residency = records_.residencies[residency].parent;
  }
}

void PrefixIndex::learn(const Query& query, std::int64_t prompt_tokens) {
  if (prompt_tokens <= 0 || prompt_tokens > kTokensMax) return;
  estimate_.observe(query.model, query.script, query.bytes, prompt_tokens);
  const Chain chain = kept(query);
  if (chain.empty() || chain.size() < query.chain.size()) return;
  const std::uint32_t node =
      table_.find(chain.back().hash, static_cast<std::uint32_t>(chain.size() - 1));
  if (node != 0) settle(node, prompt_tokens);
}

// Makes the node exact and spreads its tokens, by bytes, over the estimated nodes between it and
// the next node above whose count is known. Each node is settled once, so this is O(1) amortised.
void PrefixIndex::settle(std::uint32_t index, std::int64_t prompt_tokens) {
  Node& deep = records_.nodes[index];
  std::uint32_t anchor = deep.parent;
  while (anchor != 0 && records_.nodes[anchor].quality == Quality::Estimated) {
    anchor = records_.nodes[anchor].parent;
  }
  const std::int64_t base_tokens = anchor == 0 ? 0 : records_.nodes[anchor].tokens;
  const std::int64_t base_bytes = anchor == 0 ? 0 : records_.nodes[anchor].bytes;
  const std::int64_t total = std::max(prompt_tokens, base_tokens);
  const double bytes = static_cast<double>(std::max<std::int64_t>(1, deep.bytes - base_bytes));
  const double per_byte = static_cast<double>(total - base_tokens) / bytes;
  for (std::uint32_t at = deep.parent; at != anchor; at = records_.nodes[at].parent) {
    Node& node = records_.nodes[at];
    const double share = per_byte * static_cast<double>(node.bytes - base_bytes);
    node.tokens = static_cast<std::int32_t>(
        std::clamp<std::int64_t>(base_tokens + std::llround(share), base_tokens, total));
    node.quality = Quality::Interpolated;
  }
  deep.tokens = static_cast<std::int32_t>(total);
  deep.quality = Quality::Exact;
  for (std::uint32_t at = index; at != anchor; at = records_.nodes[at].parent) {
    recharge(records_.nodes[at]);
  }
}

// The sums of the holders follow the better count, unless there are too many of them.
void PrefixIndex::recharge(Node& node) {
  if (node.holders.size() > kRechargedHolders) return;
  const std::int32_t before = node.parent == 0 ? 0 : records_.nodes[node.parent].tokens;
  const std::int32_t charge = std::max(1, node.tokens - before);
  for (std::size_t i = 0; i < node.holders.size(); ++i) {
    const Residency& r = records_.residencies[node.holders.residency_at(i)];
    slots_[r.slot].held += charge - node.charge;
  }
  node.charge = charge;
}

std::int64_t PrefixIndex::held_tokens(model::EndpointId endpoint) const {
  const Slot* slot = known(endpoint);
  return slot == nullptr ? 0 : slot->held;
}

Stats PrefixIndex::stats() const {
  Stats stats = counts_;
  stats.nodes = records_.nodes.size();
  stats.residencies = records_.residencies.size();
  stats.endpoints = slot_by_id_.size();
  stats.bytes = records_.bytes() + table_.bytes() + holder_bytes_ +
                slots_.capacity() * sizeof(Slot) + slot_by_id_.size() * 48;
  return stats;
}

}  // namespace signalbox::cache
