// SPDX-License-Identifier: Apache-2.0
// What goes into the next step: those who run first, in the order of their admission, then the head
// of the queue while budget, seats and blocks last.
#include <algorithm>

#include "base/check.h"
#include "sim/engine/engine.h"

namespace signalbox::truth {

void Engine::start_step(Instant at, std::vector<Output>& out) {
  const Instant start = std::max(at, stalled_until_);
  std::int64_t budget = step_tokens_max_;
  StepLoad load;
  preempted_ = false;
  schedule_running(budget, load);
  if (!preempted_) schedule_waiting(start, budget, load, out);
  CHECK(!step_.empty());
  in_step_ = true;
  step_start_ = start;
  step_end_ = start + clock_.step(load);
}

void Engine::schedule_running(std::int64_t& budget, StepLoad& load) {
  // preempt() takes from the end of running_, so the length may shrink on the way.
  for (std::size_t i = 0; i < running_.size() && budget > 0; ++i) {
    const Slot slot = running_[i];
    Sequence& s = slots_[slot];
    const std::int64_t tokens = std::min(s.total() - s.computed, budget);
    bool reserved = reserve(s, s.computed + tokens);
    while (!reserved) {
      const Slot victim = running_.back();
      preempt(victim);
      if (victim == slot) break;
      reserved = reserve(s, s.computed + tokens);
    }
    if (!reserved) break;
    budget -= tokens;
    schedule(slot, tokens, load);
  }
}

void Engine::schedule_waiting(Instant at, std::int64_t& budget, StepLoad& load,
                              std::vector<Output>& out) {
  while (!waiting_.empty() && budget > 0 &&
         static_cast<std::int64_t>(running_.size()) < sequences_max_) {
    const Slot slot = waiting_.front();
    Sequence& s = slots_[slot];
    // The last token is always computed: its output is what the step is for.
    const auto most = static_cast<std::size_t>((s.total() - 1) / block_tokens_);
    const BlockCache::Match match = cache_.match(s.spec.block_hashes, most);
    const std::int64_t cached = match.blocks * block_tokens_;
    const std::int64_t tokens = std::min(s.total() - cached, budget);
    const std::int64_t needed = (cached + tokens + block_tokens_ - 1) / block_tokens_;
    if (needed - match.blocks + match.unheld > cache_.free()) break;
    for (std::uint32_t i = 0; i < match.blocks; ++i)
      s.blocks.push_back(cache_.hold(s.spec.block_hashes[i]));
    s.published = match.blocks;
    s.computed = cached;
    const bool reserved = reserve(s, cached + tokens);
    CHECK(reserved);
    waiting_.pop_front();
    running_.push_back(slot);
    ++load.admitted;
    if (s.admitted == kNever) {
      s.admitted = at;
      s.cached = std::min(cached, s.spec.prompt_tokens);
      counters_.queue_seconds.add(to_seconds(at - s.arrived));
      out.push_back({s.spec.id, Output::Kind::Admitted, false, false, 0, s.cached, at});
    }
    budget -= tokens;
    schedule(slot, tokens, load);
  }
}

// Blocks for the first `tokens` tokens of the sequence, or none at all.
bool Engine::reserve(Sequence& s, std::int64_t tokens) {
  const auto needed = static_cast<std::size_t>((tokens + block_tokens_ - 1) / block_tokens_);
  if (needed <= s.blocks.size()) return true;
  if (needed - s.blocks.size() > cache_.free()) return false;
  while (s.blocks.size() < needed) s.blocks.push_back(cache_.allocate());
  return true;
}

// Back to the head of the queue with nothing computed; what it published may be found again.
void Engine::preempt(Slot slot) {
  Sequence& s = slots_[slot];
  release_blocks(s);
  s.computed = 0;
  s.published = 0;
  running_.pop_back();
  waiting_.push_front(slot);
  ++counters_.preemptions;
  preempted_ = true;
}

void Engine::schedule(Slot slot, std::int64_t tokens, StepLoad& load) {
  const Sequence& s = slots_[slot];
  step_.push_back({slot, tokens});
  if (s.produced > 0 && tokens == 1 && s.computed + 1 == s.total()) {
    ++load.decoding;
    load.decode_tokens += s.total();
    return;
  }
  const auto fresh = static_cast<double>(tokens);
  ++load.prefilling;
  load.prefill_tokens += tokens;
  load.prefill_attention += fresh * (static_cast<double>(s.computed) + fresh / 2);
  counters_.computed_tokens += tokens;
}

}  // namespace signalbox::truth
