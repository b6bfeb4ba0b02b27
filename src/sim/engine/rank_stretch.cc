// SPDX-License-Identifier: Apache-2.0
// Stretches of passes that are all alike: after n of them every sequence is n tokens further, and
// the cache has changed where a block was filled. What happens to blocks happens in the very order
// of pass by pass, so that a stretch leaves the same cache behind.
#include <algorithm>

#include "base/check.h"
#include "sim/engine/rank.h"

namespace signalbox::truth {

// A pass that changes nothing but by one token each, and how many of its kind follow it.
std::int64_t Rank::stretch(const Pass& pass, const StepLoad& load, std::int64_t most) {
  boundaries_.clear();
  next_boundary_ = 0;
  passed_ = 0;
  if (empty()) return most;
  const bool nobody_enters = waiting_.empty() ||
                             static_cast<std::int64_t>(running_.size()) >= sequences_max_;
  const bool all_decode = static_cast<std::size_t>(load.decoding) == running_.size();
  if (!nobody_enters || !all_decode || load.admitted > 0 || load.prefilling > 0) return 0;
  if (draft_tokens_ > 0) return 0;  // nobody knows how far the next pass gets
  const std::int64_t passes = std::min(most, quiet_passes(pass));
  find_boundaries(passes);
  // Each boundary takes a block for the pass behind it; the first that finds none ends it.
  if (boundaries_.size() <= cache_.free()) return passes;
  return boundaries_[cache_.free()].pass + 1;
}

// Until the first of them has something to tell, which the last of these passes does.
std::int64_t Rank::quiet_passes(const Pass& pass) const {
  std::int64_t passes = INT64_MAX;
  for (const Scheduled& scheduled : pass) {
    const Sequence& s = slots_[scheduled.slot];
    if (s.aborted) return 0;
    passes = std::min(passes, s.spec.output_tokens - s.produced);
    const std::int64_t told = s.spec.told_token - s.produced;
    if (told > 0) passes = std::min(passes, told);
  }
  return passes;
}

// All but that of the last pass, whose end is an ordinary one.
void Rank::find_boundaries(std::int64_t passes) {
  for (const Slot slot : running_) {
    const std::int64_t computed = slots_[slot].computed;
    for (std::int64_t pass = block_tokens_ - 1 - computed % block_tokens_; pass + 1 < passes;
         pass += block_tokens_) {
      boundaries_.push_back({pass, slot, (computed + pass + 1) / block_tokens_});
    }
  }
  // Of one pass in the order of running_: insertion keeps it.
  for (std::size_t i = 1; i < boundaries_.size(); ++i) {
    const Boundary boundary = boundaries_[i];
    std::size_t at = i;
    for (; at > 0 && boundaries_[at - 1].pass > boundary.pass; --at) {
      boundaries_[at] = boundaries_[at - 1];
    }
    boundaries_[at] = boundary;
  }
}

void Rank::pass(Instant at, std::int64_t passes) {
  if (running_.empty()) return;
  passed_ += passes;
  while (next_boundary_ < boundaries_.size() && boundaries_[next_boundary_].pass < passed_) {
    const std::int64_t number = boundaries_[next_boundary_].pass;
    std::size_t end = next_boundary_;
    for (; end < boundaries_.size() && boundaries_[end].pass == number; ++end) {
      publish(slots_[boundaries_[end].slot], boundaries_[end].blocks);
    }
    for (; next_boundary_ < end; ++next_boundary_) {
      allocate(1, slots_[boundaries_[next_boundary_].slot]);
    }
  }
  for (const Slot slot : running_) {
    Sequence& s = slots_[slot];
    s.computed += passes;
    s.produced += passes;
    s.latest = at;
  }
  counters_.generated_tokens += passes * static_cast<std::int64_t>(running_.size());
}

}  // namespace signalbox::truth
