// SPDX-License-Identifier: Apache-2.0
// What goes into the next pass: those who run first, in the order of their admission, then the head
// of the queue while budget, seats and blocks last.
#include <algorithm>
#include <span>

#include "base/check.h"
#include "sim/engine/rank.h"

namespace signalbox::truth {

StepLoad Rank::start(Instant at, Pass& pass, std::vector<Output>& out) {
  std::int64_t budget = step_tokens_max_;
  StepLoad load;
  preempted_ = false;
  schedule_running(budget, pass, load);
  if (!preempted_) schedule_waiting(at, budget, pass, load, out);
  return load;
}

void Rank::schedule_running(std::int64_t& budget, Pass& pass, StepLoad& load) {
  // preempt() takes from the end of running_, so the length may shrink on the way.
  for (std::size_t i = 0; i < running_.size() && budget > 0; ++i) {
    const Slot slot = running_[i];
    Sequence& s = slots_[slot];
    const std::int64_t tokens = std::min(s.total() - s.computed, budget);
    const std::int64_t drafts = drafts_for(s, budget);
    bool reserved = reserve(s, s.computed + tokens + drafts);
    while (!reserved) {
      const Slot victim = running_.back();
      preempt(victim);
      if (victim == slot) break;
      reserved = reserve(s, s.computed + tokens + drafts);
    }
    if (!reserved) break;
    budget -= tokens + drafts;
    schedule(slot, tokens, drafts, pass, load);
  }
}

// Proposed tokens beside the one that it decodes; none behind the end of its answer.
std::int64_t Rank::drafts_for(const Sequence& s, std::int64_t budget) const {
  if (draft_tokens_ == 0 || s.produced == 0 || s.computed + 1 != s.total()) return 0;
  return std::min({draft_tokens_, s.spec.output_tokens - s.produced - 1, budget - 1});
}

// In order of arrival, but for those whose adapter finds no slot: they are passed over.
void Rank::schedule_waiting(Instant at, std::int64_t& budget, Pass& pass, StepLoad& load,
                            std::vector<Output>& out) {
  for (std::size_t next = 0; next < waiting_.size() && budget > 0 &&
                             static_cast<std::int64_t>(running_.size()) < sequences_max_;) {
    const Slot slot = waiting_[next];
    const LoraSlots::Entry adapter = loras_.ask(slots_[slot].spec.lora);
    if (adapter == LoraSlots::Entry::Full) {
      ++next;
      continue;
    }
    const Entry entry = entry_of(slots_[slot], budget);
    if (!entry.fits) break;
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(next));
    if (adapter == LoraSlots::Entry::Loads) {
      ++load.lora_loads;
      ++counters_.lora_loads;
    }
    loras_.enter(slots_[slot].spec.lora);
    admit(slot, entry, at, load, out);
    budget -= entry.tokens;
    schedule(slot, entry.tokens, 0, pass, load);
  }
}

// What is there for a sequence already, and whether there is room for what it computes next. The
// last token is always computed: its output is what the step is for.
Rank::Entry Rank::entry_of(const Sequence& s, std::int64_t budget) const {
  const auto most = static_cast<std::size_t>((s.total() - 1) / block_tokens_);
  const auto hashes = std::span(s.spec.block_hashes).first(
      std::min(most, s.spec.block_hashes.size()));
  Entry entry;
  entry.match = cache_.match(hashes, most);
  if (host_.capacity() > 0) {
    entry.from_host = static_cast<std::int64_t>(host_.match(hashes.subspan(entry.match.blocks)));
  }
  entry.known = std::max((entry.match.blocks + entry.from_host) * block_tokens_, s.received());
  entry.tokens = std::min(s.total() - entry.known, budget);
  const std::int64_t needed = (entry.known + entry.tokens + block_tokens_ - 1) / block_tokens_;
  entry.fits = needed - entry.match.blocks + entry.match.unheld <= cache_.free();
  return entry;
}

void Rank::admit(Slot slot, const Entry& entry, Instant at, StepLoad& load,
                 std::vector<Output>& out) {
  Sequence& s = slots_[slot];
  cache_.hold(s.spec.block_hashes, entry.match.blocks, s.blocks);
  if (entry.from_host > 0) {
    const auto behind = std::span(s.spec.block_hashes).subspan(entry.match.blocks);
    host_.use(behind.first(static_cast<std::size_t>(entry.from_host)));
    load.host_tokens += entry.from_host * block_tokens_;
    counters_.host_tokens += entry.from_host * block_tokens_;
  }
  s.computed = entry.known;
  const bool reserved = reserve(s, entry.known + entry.tokens);
  CHECK(reserved);
  running_.push_back(slot);
  ++load.admitted;
  if (s.admitted != kNever) return;
  s.admitted = at;
  s.cached = s.received() > 0 ? 0 : std::min(entry.known, s.spec.prompt_tokens);
  counters_.queue_seconds.add(to_seconds(at - s.arrived));
  out.push_back({s.spec.id, Output::Kind::Admitted, false, false, 0, s.cached, at});
}

// Blocks for the first `tokens` tokens of the sequence, or none at all.
bool Rank::reserve(Sequence& s, std::int64_t tokens) {
  const auto needed = static_cast<std::uint32_t>((tokens + block_tokens_ - 1) / block_tokens_);
  if (needed <= s.blocks.blocks()) return true;
  const std::uint32_t more = needed - s.blocks.blocks();
  if (more > cache_.free()) return false;
  allocate(more, s);
  return true;
}

// What has to leave the GPU for it stays in host memory for a while.
void Rank::allocate(std::uint32_t blocks, Sequence& s) {
  cache_.allocate(blocks, s.blocks, host_.capacity() > 0 ? &evicted_ : nullptr);
  for (const std::uint64_t hash : evicted_) host_.store(hash);
  evicted_.clear();
}

// Back to the head of the queue with nothing computed; what it published may be found again.
void Rank::preempt(Slot slot) {
  Sequence& s = slots_[slot];
  cache_.release(s.blocks);
  loras_.leave(s.spec.lora);
  s.computed = 0;
  s.preempted = true;
  running_.pop_back();
  waiting_.push_front(slot);
  ++counters_.preemptions;
  preempted_ = true;
}

void Rank::schedule(Slot slot, std::int64_t tokens, std::int64_t drafts, Pass& pass,
                    StepLoad& load) {
  const Sequence& s = slots_[slot];
  pass.push_back({slot, tokens, drafts});
  if (s.decodes() && tokens == 1 && s.computed + 1 == s.total()) {
    ++load.decoding;
    load.decode_tokens += s.total();
    load.drafted += drafts;
    load.draft_steps = std::max(load.draft_steps, drafts);
    return;
  }
  const auto fresh = static_cast<double>(tokens);
  ++load.prefilling;
  load.prefill_tokens += tokens;
  load.prefill_attention += fresh * (static_cast<double>(s.computed) + fresh / 2);
  counters_.computed_tokens += tokens;
}

}  // namespace signalbox::truth
