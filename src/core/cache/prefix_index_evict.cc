// SPDX-License-Identifier: Apache-2.0
// How the prefix index forgets: the order of last use, capacity, memory, corrections, restarts.
#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "core/cache/prefix_index.h"

namespace signalbox::cache {
namespace {

// Memory of the table per node just after its segments split, when it is largest.
constexpr std::size_t kTableBytesPerNode = 40;
// Engines count whole blocks and never the last token; our cuts are some 500 tokens apart.
constexpr std::int64_t kCachedSlackTokens = 256;
constexpr double kCachedSlackShare = 0.05;
// Capacity believed after a loss, an agreement and a gain. A loss every 25 agreements balances.
constexpr double kLoss = 0.95;
constexpr double kAgreement = 1.002;
constexpr double kGain = 1.05;
// The least we believe: a quarter of what the engine declares, else this many tokens.
constexpr double kBelievedFloor = 65536;

void unlink(Pool<Touch>& touches, TouchLinks Touch::*links, TouchList& list, std::uint32_t touch) {
  const TouchLinks at = touches[touch].*links;
  (at.older == 0 ? list.oldest : (touches[at.older].*links).newer) = at.newer;
  (at.newer == 0 ? list.newest : (touches[at.newer].*links).older) = at.older;
}

void link_newest(Pool<Touch>& touches, TouchLinks Touch::*links, TouchList& list,
                 std::uint32_t touch) {
  touches[touch].*links = {list.newest, 0};
  (list.newest == 0 ? list.oldest : (touches[list.newest].*links).newer) = touch;
  list.newest = touch;
}

void link_oldest(Pool<Touch>& touches, TouchLinks Touch::*links, TouchList& list,
                 std::uint32_t touch) {
  touches[touch].*links = {0, list.oldest};
  (list.oldest == 0 ? list.newest : (touches[list.oldest].*links).older) = touch;
  list.oldest = touch;
}

double capacity(const Slot& slot) {
  return slot.declared > 0 ? std::min(slot.believed, static_cast<double>(slot.declared))
                           : slot.believed;
}

void believe_less(Slot& slot) {
  const auto declared = static_cast<double>(slot.declared);
  const double floor = slot.declared > 0 ? declared / 4 : kBelievedFloor;
  const double most = slot.declared > 0 ? declared : static_cast<double>(slot.held);
  slot.believed = std::max(floor, kLoss * std::min(slot.believed, most));
}

}  // namespace

void PrefixIndex::add(model::EndpointId endpoint) {
  CHECK(endpoint);
  const auto [at, fresh] = slot_by_id_.try_emplace(endpoint, 0);
  if (!fresh) return;
  if (free_slots_.empty()) {
    free_slots_.push_back(static_cast<std::uint32_t>(slots_.size()));
    slots_.emplace_back();
  }
  at->second = free_slots_.back();
  free_slots_.pop_back();
  slots_[at->second] = Slot{};
  slots_[at->second].endpoint = endpoint;
}

std::uint32_t PrefixIndex::slot_of(model::EndpointId endpoint) const {
  const auto at = slot_by_id_.find(endpoint);
  return at == slot_by_id_.end() ? 0 : at->second;
}

const Slot* PrefixIndex::known(model::EndpointId endpoint) const {
  const std::uint32_t slot = slot_of(endpoint);
  return slot == 0 ? nullptr : &slots_[slot];
}

Slot* PrefixIndex::known(model::EndpointId endpoint) {
  const std::uint32_t slot = slot_of(endpoint);
  return slot == 0 ? nullptr : &slots_[slot];
}

// The residency's touch, as the newest of all. The pool must have room for one.
std::uint32_t PrefixIndex::touch(std::uint32_t residency) {
  Residency& r = records_.residencies[residency];
  Slot& slot = slots_[r.slot];
  if (r.touch == 0) {
    r.touch = records_.touches.take();
    records_.touches[r.touch].residency = residency;
  } else {
    unlink(records_.touches, &Touch::here, slot.touches, r.touch);
    unlink(records_.touches, &Touch::everywhere, everywhere_, r.touch);
  }
  link_newest(records_.touches, &Touch::here, slot.touches, r.touch);
  link_newest(records_.touches, &Touch::everywhere, everywhere_, r.touch);
  return r.touch;
}

void PrefixIndex::drop_touch(std::uint32_t touch) {
  Residency& r = records_.residencies[records_.touches[touch].residency];
  unlink(records_.touches, &Touch::here, slots_[r.slot].touches, touch);
  unlink(records_.touches, &Touch::everywhere, everywhere_, touch);
  r.touch = 0;
  records_.touches.give_back(touch);
}

std::size_t PrefixIndex::reserved() const {
  return records_.bytes() + records_.nodes.allocated() * kTableBytesPerNode + holder_bytes_;
}

// Lets one node, one residency, one touch and `holder_bytes` be taken without passing the limit;
// forgets what was used longest ago for it, but not `protected_touch`. False: nothing is left.
bool PrefixIndex::make_room(std::uint32_t protected_touch, std::size_t holder_bytes) {
  const auto limit = static_cast<std::size_t>(config_.index_bytes_max.value);
  for (;;) {
    std::size_t growth = holder_bytes;
    if (records_.nodes.full()) growth += Pool<Node>::kChunk * (sizeof(Node) + kTableBytesPerNode);
    if (records_.residencies.full()) growth += Pool<Residency>::kChunk * sizeof(Residency);
    if (records_.touches.full()) growth += Pool<Touch>::kChunk * sizeof(Touch);
    if (growth == 0 || reserved() + growth <= limit) return true;
    if (everywhere_.oldest == 0 || everywhere_.oldest == protected_touch) return false;
    if (evict_touch(everywhere_.oldest)) ++counts_.memory_evictions;
  }
}

// True if a residency went; false if the touch was only out of date.
bool PrefixIndex::evict_touch(std::uint32_t touch) {
  const std::uint32_t residency = records_.touches[touch].residency;
  if (records_.residencies[residency].first_child != 0) {
    drop_touch(touch);
    return false;
  }
  remove_leaf(residency);
  return true;
}

void PrefixIndex::evict_over_capacity(Slot& slot, std::size_t residencies) {
  const double most = capacity(slot);
  while (static_cast<double>(slot.held) > most && residencies > 0) {
    if (evict_touch(slot.touches.oldest)) {
      ++counts_.capacity_evictions;
      --residencies;
    }
  }
}

void PrefixIndex::remove_leaf(std::uint32_t index) {
  const Residency r = records_.residencies[index];
  CHECK(r.first_child == 0 && r.touch != 0);
  Slot& slot = slots_[r.slot];
  Node& node = records_.nodes[r.node];
  slot.held -= node.charge;
  holder_bytes_ -= node.holders.heap_bytes();
  node.holders.erase(slot.endpoint);
  holder_bytes_ += node.holders.heap_bytes();
  if (node.holders.size() == 0) {
    table_.erase(node.hash);
    records_.nodes.give_back(r.node);
  }
  if (r.next != 0) records_.residencies[r.next].previous = r.previous;
  if (r.previous != 0) records_.residencies[r.previous].next = r.next;
  Residency* parent = r.parent == 0 ? nullptr : &records_.residencies[r.parent];
  if (parent != nullptr && r.previous == 0) parent->first_child = r.next;
  if (parent != nullptr && parent->first_child == 0 && parent->touch == 0) {
    parent->touch = r.touch;
    records_.touches[r.touch].residency = r.parent;
  } else {
    drop_touch(r.touch);
  }
  records_.residencies.give_back(index);
}

// The parent, if it is left without children and was not used by itself, becomes the oldest: an
// engine that let go of the leaves comes to it next.
void PrefixIndex::remove_subtree(std::uint32_t root) {
  const std::uint32_t parent = records_.residencies[root].parent;
  const bool used_itself = parent != 0 && records_.residencies[parent].touch != 0;
  for (std::uint32_t at = root;;) {
    while (records_.residencies[at].first_child != 0) at = records_.residencies[at].first_child;
    const std::uint32_t above = records_.residencies[at].parent;
    const bool last = at == root;
    remove_leaf(at);
    if (last) break;
    at = above;
  }
  if (parent == 0 || used_itself || records_.residencies[parent].touch == 0) return;
  const Residency& p = records_.residencies[parent];
  TouchList& here = slots_[p.slot].touches;
  unlink(records_.touches, &Touch::here, here, p.touch);
  unlink(records_.touches, &Touch::everywhere, everywhere_, p.touch);
  link_oldest(records_.touches, &Touch::here, here, p.touch);
  link_oldest(records_.touches, &Touch::everywhere, everywhere_, p.touch);
}

void PrefixIndex::withdraw(model::EndpointId endpoint, const Query& query) {
  std::uint32_t at = deepest_held(kept(query), endpoint).residency;
  while (at != 0) {
    const Residency& r = records_.residencies[at];
    if (!r.pending || r.first_child != 0) return;
    const std::uint32_t parent = r.parent;
    remove_leaf(at);
    at = parent;
  }
}

void PrefixIndex::evict(model::EndpointId endpoint, std::uint64_t hash, std::uint32_t depth) {
  const std::uint32_t node = table_.find(hash, depth);
  const std::uint32_t held = node == 0 ? 0 : records_.nodes[node].holders.find(endpoint);
  if (held != 0) remove_subtree(held);
}

void PrefixIndex::observe_cached(model::EndpointId endpoint, const Query& query,
                                 const Belief& believed, std::int64_t cached) {
  Slot* slot = known(endpoint);
  if (cached < 0 || slot == nullptr) return;
  const auto larger = static_cast<double>(std::max(believed.hoped, cached));
  const auto slack = std::max<std::int64_t>(kCachedSlackTokens,
                                            std::llround(kCachedSlackShare * larger));
  if (cached + slack < believed.sure) {
    ++counts_.losses_corrected;
    believe_less(*slot);
    lose(endpoint, query, cached + slack);
  } else if (cached > believed.hoped + slack) {
    ++counts_.gains_corrected;
    slot->believed *= kGain;
    gain(endpoint, query, cached);
  } else if (believed.sure > 0) {
    slot->believed *= kAgreement;
  }
}

// The endpoint holds no node of the chain beyond `tokens`, nor what follows such a node.
void PrefixIndex::lose(model::EndpointId endpoint, const Query& query, std::int64_t tokens) {
  std::uint32_t lost = 0;
  std::uint32_t at = deepest_held(kept(query), endpoint).residency;
  while (at != 0 && records_.nodes[records_.residencies[at].node].tokens > tokens) {
    lost = at;
    at = records_.residencies[at].parent;
  }
  if (lost != 0) remove_subtree(lost);
}

// The endpoint holds the nodes of the chain within `tokens`.
void PrefixIndex::gain(model::EndpointId endpoint, const Query& query, std::int64_t tokens) {
  const auto whole = static_cast<double>(std::max<std::int64_t>(1, lookup(query).prompt_tokens));
  const double bytes = static_cast<double>(query.bytes) * static_cast<double>(tokens) / whole;
  std::size_t count = 0;
  while (count < query.chain.size() && static_cast<double>(query.chain[count].bytes) <= bytes) {
    ++count;
  }
  Query gained = query;
  gained.chain = query.chain.first(count);
  insert(endpoint, gained, Residence::Held);
}

void PrefixIndex::set_capacity(model::EndpointId endpoint, std::int64_t tokens) {
  Slot* slot = known(endpoint);
  if (slot == nullptr) return;
  slot->declared = std::max<std::int64_t>(0, tokens);
  evict_over_capacity(*slot, kSlice);
}

bool PrefixIndex::clear_some(model::EndpointId endpoint, std::size_t residencies) {
  Slot* slot = known(endpoint);
  if (slot == nullptr) return true;
  while (slot->touches.oldest != 0 && residencies > 0) {
    if (evict_touch(slot->touches.oldest)) --residencies;
  }
  return slot->touches.oldest == 0;
}

void PrefixIndex::clear(model::EndpointId endpoint) {
  clear_some(endpoint, std::numeric_limits<std::size_t>::max());
}

void PrefixIndex::remove(model::EndpointId endpoint) {
  clear(endpoint);
  const auto at = slot_by_id_.find(endpoint);
  if (at == slot_by_id_.end()) return;
  free_slots_.push_back(at->second);
  slot_by_id_.erase(at);
}

std::int64_t PrefixIndex::believed_capacity(model::EndpointId endpoint) const {
  const Slot* slot = known(endpoint);
  const double most = slot == nullptr ? 0 : capacity(*slot);
  return most >= 9e18 ? std::numeric_limits<std::int64_t>::max() : static_cast<std::int64_t>(most);
}

}  // namespace signalbox::cache
