// SPDX-License-Identifier: Apache-2.0
// Endpoints come and go, prompts become pieces.
#include <algorithm>
#include <string_view>
#include <utility>

#include "sim/content.h"
#include "sim/peer_decider.h"
#include "sim/peers/kv_view.h"

namespace signalbox::sim {
namespace {

constexpr std::int64_t kCutTokens = 512;

std::uint64_t name_of(std::string_view address) {
  std::uint64_t hash = 0xCBF29CE484222325ull;
  for (const char c : address) hash = mixed(hash, static_cast<unsigned char>(c));
  return hash;
}

std::vector<peers::Piece> pieces_of(std::uint64_t domain, std::span<const Span> spans) {
  std::vector<peers::Piece> pieces;
  std::uint64_t hash = mixed(domain, 3);
  std::int64_t start = 0;
  for (const Span& span : spans) {
    for (std::int64_t from = 0; from < span.tokens; from += kCutTokens) {
      const std::int64_t to = std::min(span.tokens, from + kCutTokens);
      hash = std::max<std::uint64_t>(
          1, mixed(mixed(hash, span.content), static_cast<std::uint64_t>(to)));
      pieces.push_back({hash, start + to});
    }
    start += span.tokens;
  }
  return pieces;
}

// The cuts of `pieces`, rounded down to whole blocks.
std::vector<peers::Piece> block_pieces(std::span<const peers::Piece> pieces,
                                       std::span<const std::uint64_t> hashes,
                                       std::int64_t block_tokens) {
  std::vector<peers::Piece> cuts;
  std::int64_t before = 0;
  for (const peers::Piece& piece : pieces) {
    const std::int64_t blocks = piece.end / block_tokens;
    if (blocks == before) continue;
    before = blocks;
    cuts.push_back({peers::KvView::name(hashes[static_cast<std::size_t>(blocks - 1)]),
                    blocks * block_tokens});
  }
  return cuts;
}

// What a client that names its conversation would send: how it began.
std::uint64_t session_of(const Session& session) {
  std::uint64_t hash = 5;
  for (std::size_t i = 0; i < std::min<std::size_t>(2, session.history.size()); ++i) {
    hash = mixed(hash, session.history[i].content);
  }
  return std::max<std::uint64_t>(1, hash);
}

}  // namespace

void PeerDecider::asked(model::RequestId id, const Ask& ask) {
  Request& request = asked_[id];
  const std::vector<Span>& spans = ask.session.history;
  request.session = session_of(ask.session);
  request.prompt = pieces_of(ask.session.lora, spans);
  request.tokens = tokens_of(spans);
  if (!traits_.cache_events) return;
  for (const std::int64_t size : block_sizes_) {
    const std::vector<std::uint64_t> hashes = blocks_of(ask.session.lora, spans, size);
    request.blocks.push_back(block_pieces(request.prompt, hashes, size));
  }
}

void PeerDecider::profiled(model::EndpointId endpoint, const truth::EngineSpec& spec) {
  profiles_[endpoint] = peers::measure(spec);
  block_sizes_.insert(spec.block_tokens);
}

void PeerDecider::looked(model::EndpointId endpoint, const LoadDetails& details) {
  if (const auto found = slots_.find(endpoint); found != slots_.end()) {
    seen_[found->second].waiting_tokens = details.waiting_tokens;
  }
}

void PeerDecider::cache_changed(model::EndpointId endpoint,
                                std::span<const truth::CacheEvent> changes) {
  if (const auto found = slots_.find(endpoint); found != slots_.end()) {
    rule_->cache_changed(found->second, changes);
  }
}

void PeerDecider::apply(const flow::Setup& setup, Instant now, flow::Actions& out) {
  fleet_ = setup.fleet;
  std::vector<Slot> gone;
  for (const auto& [id, slot] : slots_) {
    const model::EndpointId endpoint = id;
    if (std::none_of(fleet_->endpoints.begin(), fleet_->endpoints.end(),
                     [&](const model::Endpoint& e) { return e.id == endpoint; })) {
      gone.push_back(slot);
    }
  }
  for (const Slot slot : gone) leave(slot, now);
  for (const model::Endpoint& endpoint : fleet_->endpoints) {
    if (slots_.contains(endpoint.id)) continue;
    const auto pool = std::find_if(fleet_->pools.begin(), fleet_->pools.end(),
                                   [&](const model::Pool& p) { return p.id == endpoint.pool; });
    // Who decodes what others have prefilled gets no requests.
    if (pool->role != model::Role::Decode) join(endpoint, pool->model);
  }
  queue_moves_ = true;
  drain_queue(now, out);
}

PeerDecider::Slot PeerDecider::free_slot() {
  for (Slot slot = 0; slot < seen_.size(); ++slot) {
    if (!seen_[slot].present) return slot;
  }
  seen_.emplace_back();
  watches_.emplace_back();
  return static_cast<Slot>(seen_.size() - 1);
}

void PeerDecider::join(const model::Endpoint& endpoint, model::ModelId model) {
  const Slot slot = free_slot();
  slots_[endpoint.id] = slot;
  seen_[slot] = {};
  seen_[slot].name = name_of(endpoint.address);
  seen_[slot].present = true;
  if (const auto found = profiles_.find(endpoint.id); found != profiles_.end()) {
    seen_[slot].profile = found->second;
    profiles_.erase(found);
  }
  watches_[slot] = {};
  watches_[slot].endpoint = endpoint.id;
  watches_[slot].model = model;
  rule_->joined(slot, seen_);
}

// Its requests run on, uncounted.
void PeerDecider::leave(Slot slot, Instant now) {
  for (const model::RequestId id : in_order()) {
    Request& request = requests_.at(id);
    if (!request.booked || request.slot != slot) continue;
    const model::EndpointId endpoint = request.endpoint;
    unbook(id, request, 0, now);
    request.endpoint = endpoint;
    ++running_;
  }
  slots_.erase(watches_[slot].endpoint);
  seen_[slot].present = false;
  rule_->left(slot);
}

}  // namespace signalbox::sim
