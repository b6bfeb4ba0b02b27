// SPDX-License-Identifier: Apache-2.0
// Arrival, the end of a step, and leaving.
#include "sim/engine/engine.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace signalbox::truth {
namespace {

std::uint32_t blocks_of(const EngineSpec& spec) {
  CHECK(spec.block_tokens > 0 && spec.kv_tokens >= spec.block_tokens);
  return static_cast<std::uint32_t>(spec.kv_tokens / spec.block_tokens);
}

}  // namespace

Engine::Engine(const EngineSpec& spec, Rng rng)
    : block_tokens_(spec.block_tokens),
      sequences_max_(spec.sequences_max),
      step_tokens_max_(spec.step_tokens_max),
      cache_(blocks_of(spec)),
      clock_(spec, rng) {
  CHECK(sequences_max_ > 0 && step_tokens_max_ > 0);
}

bool Engine::fits(std::int64_t tokens) const {
  return tokens > 0 && (tokens + block_tokens_ - 1) / block_tokens_ <= cache_.capacity();
}

void Engine::submit(SequenceSpec sequence, Instant now) {
  CHECK(sequence.prompt_tokens > 0 && sequence.output_tokens > 0);
  CHECK(fits(sequence.prompt_tokens + sequence.output_tokens));
  CHECK(next_event() >= now);
  Slot slot = static_cast<Slot>(slots_.size());
  if (free_slots_.empty()) {
    slots_.emplace_back();
  } else {
    slot = free_slots_.back();
    free_slots_.pop_back();
  }
  const bool fresh = by_id_.emplace(sequence.id, slot).second;
  CHECK(fresh);
  if (!in_step_ && waiting_.empty() && running_.empty()) ready_at_ = now;
  Sequence& s = slots_[slot];
  s.spec = std::move(sequence);
  s.arrived = now;
  waiting_.push_back(slot);
}

bool Engine::abort(SequenceId id, Instant now) {
  const auto it = by_id_.find(id);
  if (it == by_id_.end()) return false;
  const Slot slot = it->second;
  ++counters_.aborted;
  if (const auto w = std::find(waiting_.begin(), waiting_.end(), slot); w != waiting_.end()) {
    waiting_.erase(w);
    retire(slot);
    return true;
  }
  by_id_.erase(it);
  slots_[slot].aborted = true;
  if (!in_step_) {
    drop_ended();
    ready_at_ = std::max(ready_at_, now);
  }
  return true;
}

Instant Engine::next_event() const {
  if (in_step_) return step_end_;
  return waiting_.empty() && running_.empty() ? kNever : ready_at_;
}

void Engine::advance(Instant now, std::vector<Output>& out) {
  while (next_event() <= now) {
    if (in_step_)
      finish_step(out);
    else
      start_step(ready_at_, out);
  }
}

void Engine::finish_step(std::vector<Output>& out) {
  in_step_ = false;
  ready_at_ = step_end_;
  ++counters_.steps;
  counters_.busy_seconds += to_seconds(step_end_ - step_start_);
  std::int64_t tokens = 0;
  for (const Scheduled& scheduled : step_) {
    Sequence& s = slots_[scheduled.slot];
    tokens += scheduled.tokens;
    if (s.aborted) continue;
    s.computed += scheduled.tokens;
    publish(s);
    if (s.computed == s.total()) produce(s, out);
  }
  counters_.step_tokens.add(static_cast<double>(tokens));
  step_.clear();
  drop_ended();
}

void Engine::produce(Sequence& s, std::vector<Output>& out) {
  ++s.produced;
  ++counters_.generated_tokens;
  const bool first = s.produced == 1;
  const bool last = s.produced == s.spec.output_tokens;
  if (first) {
    counters_.prompt_tokens += s.spec.prompt_tokens;
    counters_.cached_tokens += s.cached;
    counters_.prefill_seconds.add(to_seconds(step_end_ - s.admitted));
    counters_.prefill_tokens.add(static_cast<double>(s.spec.prompt_tokens - s.cached));
  }
  if (last) ++counters_.finished;
  out.push_back({s.spec.id, Output::Kind::Token, first, last, s.produced, s.cached, step_end_});
}

// Blocks whose every token is computed and whose hash is known become findable.
void Engine::publish(Sequence& s) {
  const auto full = std::min(static_cast<std::size_t>(s.computed / block_tokens_),
                             s.spec.block_hashes.size());
  for (; s.published < full; ++s.published)
    cache_.publish(s.blocks[s.published], s.spec.block_hashes[s.published]);
}

// The tail goes first, so that a prefix outlives what stands on it.
void Engine::release_blocks(Sequence& s) {
  for (auto it = s.blocks.rbegin(); it != s.blocks.rend(); ++it) cache_.release(*it);
  s.blocks.clear();
}

void Engine::retire(Slot slot) {
  Sequence& s = slots_[slot];
  release_blocks(s);
  by_id_.erase(s.spec.id);
  s = Sequence{};
  free_slots_.push_back(slot);
}

void Engine::drop_ended() {
  const auto ended = [&](Slot slot) {
    Sequence& s = slots_[slot];
    if (!s.aborted && s.produced < s.spec.output_tokens) return false;
    // The id of an aborted sequence is free since the abort and may name another by now.
    if (s.aborted) {
      release_blocks(s);
      s = Sequence{};
      free_slots_.push_back(slot);
    } else {
      retire(slot);
    }
    return true;
  };
  std::erase_if(running_, ended);
}

void Engine::stall_until(Instant until) {
  stalled_until_ = until;
  if (in_step_) step_end_ = std::max(step_end_, until);
}

void Engine::restart(std::vector<SequenceId>& lost) {
  for (Slot slot : running_)
    if (!slots_[slot].aborted) lost.push_back(slots_[slot].spec.id);
  for (Slot slot : waiting_) lost.push_back(slots_[slot].spec.id);
  slots_.clear();
  free_slots_.clear();
  by_id_.clear();
  waiting_.clear();
  running_.clear();
  step_.clear();
  in_step_ = false;
  cache_ = BlockCache(cache_.capacity());
  if (publishes_cache_) {
    cache_.log_to(&cache_events_);
    cache_events_.assign(1, {CacheEvent::Kind::Cleared, 0});
  }
  counters_ = Counters{};
  ++incarnation_;
}

std::int64_t Engine::waiting_tokens() const {
  std::int64_t tokens = 0;
  for (const Slot slot : waiting_) {
    const Sequence& s = slots_[slot];
    const auto most = static_cast<std::size_t>((s.total() - 1) / block_tokens_);
    const BlockCache::Match match = cache_.match(s.spec.block_hashes, most);
    tokens += std::max<std::int64_t>(0, s.spec.prompt_tokens - match.blocks * block_tokens_);
  }
  return tokens;
}

void Engine::publish_cache() {
  publishes_cache_ = true;
  cache_.log_to(&cache_events_);
}

std::vector<CacheEvent> Engine::take_cache_events() { return std::exchange(cache_events_, {}); }

Gauges Engine::gauges() const {
  Gauges g;
  g.running = static_cast<std::int64_t>(running_.size());
  g.waiting = static_cast<std::int64_t>(waiting_.size());
  g.kv_blocks = cache_.capacity();
  g.kv_blocks_used = cache_.used();
  return g;
}

}  // namespace signalbox::truth
