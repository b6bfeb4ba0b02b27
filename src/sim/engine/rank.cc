// SPDX-License-Identifier: Apache-2.0
// Arrival, the end of a pass, and leaving.
#include "sim/engine/rank.h"

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

Rank::Rank(const EngineSpec& spec, Rng drafts)
    : block_tokens_(spec.block_tokens),
      sequences_max_(spec.sequences_max),
      step_tokens_max_(spec.step_tokens_max),
      draft_tokens_(spec.draft_tokens),
      acceptance_(spec.acceptance),
      drafts_rng_(drafts),
      cache_(blocks_of(spec)),
      host_(static_cast<std::size_t>(spec.host_kv_tokens / spec.block_tokens)),
      loras_(static_cast<std::size_t>(spec.lora_slots)) {
  CHECK(sequences_max_ > 0 && step_tokens_max_ > 0);
}

bool Rank::fits(std::int64_t tokens) const {
  return tokens > 0 && (tokens + block_tokens_ - 1) / block_tokens_ <= cache_.capacity();
}

Rank::Slot Rank::submit(SequenceSpec sequence, Instant now) {
  CHECK(sequence.prompt_tokens > 0 && sequence.output_tokens >= 0);
  CHECK(sequence.received_tokens >= 0 && sequence.received_tokens < sequence.prompt_tokens);
  CHECK(fits(sequence.prompt_tokens + sequence.output_tokens));
  Slot slot = static_cast<Slot>(slots_.size());
  if (free_slots_.empty()) {
    slots_.emplace_back();
  } else {
    slot = free_slots_.back();
    free_slots_.pop_back();
  }
  const bool fresh = by_id_.emplace(sequence.id, slot).second;
  CHECK(fresh);
  Sequence& s = slots_[slot];
  s.spec = std::move(sequence);
  s.arrived = s.latest = now;
  waiting_.push_back(slot);
  return slot;
}

Rank::Abort Rank::abort(SequenceId id) {
  const auto it = by_id_.find(id);
  if (it == by_id_.end()) return Abort::Unknown;
  if (release(id)) return Abort::Waited;
  const Slot slot = it->second;
  ++counters_.aborted;
  if (const auto w = std::find(waiting_.begin(), waiting_.end(), slot); w != waiting_.end()) {
    waiting_.erase(w);
    retire(slot);
    return Abort::Waited;
  }
  by_id_.erase(it);
  slots_[slot].aborted = true;
  return Abort::Runs;
}

bool Rank::release(SequenceId id) {
  const auto it = by_id_.find(id);
  if (it == by_id_.end()) return false;
  const auto kept = std::find(kept_.begin(), kept_.end(), it->second);
  if (kept == kept_.end()) return false;
  const Slot slot = *kept;
  kept_.erase(kept);
  retire(slot);
  return true;
}

void Rank::finish(Instant at, Pass& pass, std::vector<Output>& out) {
  for (const Scheduled& scheduled : pass) {
    Sequence& s = slots_[scheduled.slot];
    if (s.aborted) continue;
    s.computed += scheduled.tokens;
    const bool whole = s.computed == s.total();
    // What was accepted has its KV from this pass as well.
    const std::int64_t more = whole ? accepted(scheduled.drafts) : 0;
    s.computed += more;
    publish(s, s.computed / block_tokens_);
    if (!whole) continue;
    if (s.spec.output_tokens == 0) end_prefill(at, s, out);
    for (std::int64_t i = 0; i <= more && !s.ended; ++i) produce(at, s, out);
  }
  pass.clear();
  drop_ended();
}

std::int64_t Rank::accepted(std::int64_t drafts) {
  std::int64_t n = 0;
  while (n < drafts && drafts_rng_.chance(acceptance_)) ++n;
  counters_.drafted_tokens += drafts;
  counters_.accepted_tokens += n;
  return n;
}

// Another engine makes the answer.
void Rank::end_prefill(Instant at, Sequence& s, std::vector<Output>& out) {
  s.ended = true;
  count_prompt(at, s);
  ++counters_.finished;
  out.push_back({s.spec.id, Output::Kind::Prefilled, false, true, 0, s.cached, at});
}

void Rank::count_prompt(Instant at, const Sequence& s) {
  counters_.prompt_tokens += s.spec.prompt_tokens;
  counters_.cached_tokens += s.cached;
  counters_.prefill_seconds.add(to_seconds(at - s.admitted));
  counters_.prefill_tokens.add(static_cast<double>(s.spec.prompt_tokens - s.cached));
}

void Rank::took(double seconds, std::int64_t tokens) {
  ++counters_.steps;
  counters_.busy_seconds += seconds;
  counters_.step_tokens.add(static_cast<double>(tokens));
}

void Rank::produce(Instant at, Sequence& s, std::vector<Output>& out) {
  ++s.produced;
  s.latest = at;
  ++counters_.generated_tokens;
  const bool first = s.produced == 1;
  const bool last = s.produced == s.spec.output_tokens;
  // Whose KV was received is in the counts of the engine that made it.
  if (first && s.spec.received_tokens == 0) count_prompt(at, s);
  s.ended = last;
  if (last) ++counters_.finished;
  if (!tells_all_ && !first && !last && s.produced != s.spec.told_token) return;
  out.push_back({s.spec.id, Output::Kind::Token, first, last, s.produced, s.cached, at});
}

// Blocks whose every token is computed and whose hash is known become findable.
void Rank::publish(Sequence& s, std::int64_t full_blocks) {
  const auto known = static_cast<std::int64_t>(s.spec.block_hashes.size());
  cache_.publish(s.spec.block_hashes, static_cast<std::uint32_t>(std::min(full_blocks, known)),
                 s.blocks);
}

void Rank::retire(Slot slot) {
  Sequence& s = slots_[slot];
  cache_.release(s.blocks);
  by_id_.erase(s.spec.id);
  s = Sequence{};
  free_slots_.push_back(slot);
}

void Rank::drop_ended() {
  const auto ended = [&](Slot slot) {
    Sequence& s = slots_[slot];
    if (!s.aborted && !s.ended) return false;
    loras_.leave(s.spec.lora);
    // The id of an aborted sequence is free since the abort and may name another by now.
    if (s.aborted) {
      cache_.release(s.blocks);
      s = Sequence{};
      free_slots_.push_back(slot);
    } else if (s.spec.output_tokens == 0) {
      kept_.push_back(slot);
    } else {
      retire(slot);
    }
    return true;
  };
  std::erase_if(running_, ended);
}

void Rank::clear(std::vector<SequenceId>& lost) {
  for (Slot slot : running_) {
    if (!slots_[slot].aborted) lost.push_back(slots_[slot].spec.id);
  }
  for (Slot slot : waiting_) lost.push_back(slots_[slot].spec.id);
  for (Slot slot : kept_) lost.push_back(slots_[slot].spec.id);
  kept_.clear();
  host_.clear();
  loras_.clear();
  slots_.clear();
  free_slots_.clear();
  by_id_.clear();
  waiting_.clear();
  running_.clear();
  cache_ = BlockCache(cache_.capacity());
}

std::int64_t Rank::waiting_tokens() const {
  std::int64_t tokens = 0;
  for (const Slot slot : waiting_) {
    const Sequence& s = slots_[slot];
    const auto most = static_cast<std::size_t>((s.total() - 1) / block_tokens_);
    const BlockCache::Match match = cache_.match(s.spec.block_hashes, most);
    tokens += std::max<std::int64_t>(0, s.spec.prompt_tokens - match.blocks * block_tokens_);
  }
  return tokens;
}

void Rank::drop_cache() {
  cache_.forget();
  host_.clear();
}

Gauges Rank::gauges() const {
  Gauges g;
  g.running = static_cast<std::int64_t>(running_.size());
  g.waiting = static_cast<std::int64_t>(waiting_.size());
  g.kv_blocks = cache_.capacity();
  g.kv_blocks_used = cache_.used();
  return g;
}

}  // namespace signalbox::truth
