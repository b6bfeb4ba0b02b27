// SPDX-License-Identifier: Apache-2.0
// One scheduler with its KV cache: who waits, who runs, what goes into the next pass. An engine has
// one, or one a data-parallel rank. Pure.
// Keeps: blocks return to zero when the last sequence ends; FIFO admission.
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "base/rng.h"
#include "base/time.h"
#include "sim/engine/block_cache.h"
#include "sim/engine/cache_event.h"
#include "sim/engine/host_tier.h"
#include "sim/engine/lora_slots.h"
#include "sim/engine/spec.h"
#include "sim/engine/step_clock.h"

namespace signalbox::truth {

class Rank {
 public:
  using Slot = std::uint32_t;

  // What one sequence has in a pass.
  struct Scheduled {
    Slot slot;
    std::int64_t tokens;  // computed in it
    std::int64_t drafts;  // verified beside the last
  };
  using Pass = std::vector<Scheduled>;

  // `drafts` draws which proposed tokens are accepted.
  Rank(const EngineSpec& spec, Rng drafts);

  bool fits(std::int64_t tokens) const;
  // Where the sequence is as long as it is here.
  Slot submit(SequenceSpec sequence, Instant now);
  enum class Abort : std::uint8_t { Unknown, Waited, Runs };
  // Waited: it has left. Runs: it leaves at the end of its pass.
  Abort abort(SequenceId id);
  // Frees the blocks of a sequence without output that has ended. False: it is not here.
  bool release(SequenceId id);
  bool empty() const { return waiting_.empty() && running_.empty(); }

  // rank_schedule.cc: what goes into a pass that starts at `at`. `pass` is empty.
  StepLoad start(Instant at, Pass& pass, std::vector<Output>& out);
  // The pass has ended at `at`; `pass` is empty afterwards.
  void finish(Instant at, Pass& pass, std::vector<Output>& out);
  // Those who were aborted between passes leave.
  void drop_ended();

  // rank_stretch.cc: passes on end in which everyone decodes one token, nobody comes or leaves and
  // nothing is told. How many such passes the one that has just started begins, itself included;
  // 0: it is none. At most `most`.
  std::int64_t stretch(const Pass& pass, const StepLoad& load, std::int64_t most);
  // The first `passes` passes of the stretch that were not passed yet have ended, the last at `at`,
  // and the next one has started.
  void pass(Instant at, std::int64_t passes);

  struct Progress {
    std::int64_t tokens = 0;  // of the answer
    Instant latest{};         // when the last of them came
  };
  Progress progress(Slot slot) const { return {slots_[slot].produced, slots_[slot].latest}; }

  Gauges gauges() const;
  const Counters& counters() const { return counters_; }
  std::int64_t waiting_tokens() const;
  std::size_t cached_blocks() const { return cache_.cached(); }
  void log_to(std::vector<CacheEvent>* log) { cache_.log_to(log); }
  void drop_cache();
  // Whether tokens between the first and the last of an answer are told.
  void tell_all(bool all) { tells_all_ = all; }
  // Every sequence is lost, and all KV.
  void clear(std::vector<SequenceId>& lost);
  void reset_counters() { counters_ = Counters{}; }
  // A pass of `tokens` tokens took `seconds`.
  void took(double seconds, std::int64_t tokens);

 private:
  struct Sequence {
    SequenceSpec spec;
    BlockCache::Held blocks;
    std::int64_t computed = 0;  // tokens whose KV is there
    std::int64_t produced = 0;  // tokens of the answer
    std::int64_t cached = 0;    // prompt tokens found when first admitted
    Instant arrived{};
    Instant admitted = kNever;  // for the first time
    Instant latest{};           // token
    bool aborted = false;       // leaves at the end of the pass
    bool ended = false;         // by itself, likewise
    bool preempted = false;     // what it had received is lost
    std::int64_t total() const { return spec.prompt_tokens + produced; }
    std::int64_t received() const { return preempted ? 0 : spec.received_tokens; }
    // Whether its next token comes of a decode step.
    bool decodes() const { return produced > 0 || received() > 0; }
  };
  // A sequence of the stretch fills a block in the pass of that number, and needs one more for the
  // next.
  struct Boundary {
    std::int64_t pass;
    Slot slot;
    std::int64_t blocks;  // full then
  };

  // rank_schedule.cc
  void schedule_running(std::int64_t& budget, Pass& pass, StepLoad& load);
  void schedule_waiting(Instant at, std::int64_t& budget, Pass& pass, StepLoad& load,
                        std::vector<Output>& out);
  struct Entry {
    BlockCache::Match match;
    std::int64_t from_host = 0;  // blocks
    std::int64_t known = 0;      // leading tokens that need no computing
    std::int64_t tokens = 0;     // to compute in this pass
    bool fits = false;
  };
  Entry entry_of(const Sequence& sequence, std::int64_t budget) const;
  void admit(Slot slot, const Entry& entry, Instant at, StepLoad& load, std::vector<Output>& out);
  std::int64_t drafts_for(const Sequence& sequence, std::int64_t budget) const;
  bool reserve(Sequence& sequence, std::int64_t tokens);
  void allocate(std::uint32_t blocks, Sequence& sequence);
  void preempt(Slot slot);
  void schedule(Slot slot, std::int64_t tokens, std::int64_t drafts, Pass& pass, StepLoad& load);

  // rank.cc
  std::int64_t accepted(std::int64_t drafts);
  void end_prefill(Instant at, Sequence& sequence, std::vector<Output>& out);
  void count_prompt(Instant at, const Sequence& sequence);
  void produce(Instant at, Sequence& sequence, std::vector<Output>& out);
  void publish(Sequence& sequence, std::int64_t full_blocks);
  void retire(Slot slot);

  // rank_stretch.cc
  std::int64_t quiet_passes(const Pass& pass) const;
  void find_boundaries(std::int64_t passes);

  std::int64_t block_tokens_;
  std::int64_t sequences_max_;
  std::int64_t step_tokens_max_;
  std::int64_t draft_tokens_;
  double acceptance_;
  Rng drafts_rng_;
  BlockCache cache_;
  HostTier host_;
  LoraSlots loras_;
  std::vector<std::uint64_t> evicted_;  // scratch
  Counters counters_;
  bool tells_all_ = true;

  std::vector<Sequence> slots_;
  std::vector<Slot> free_slots_;
  std::unordered_map<SequenceId, Slot> by_id_;  // looked up, never walked
  std::deque<Slot> waiting_;                    // the head is admitted next
  std::vector<Slot> running_;                   // oldest admission first
  std::vector<Slot> kept_;                      // ended, and their blocks are still wanted
  bool preempted_ = false;                      // while the present pass was made

  std::vector<Boundary> boundaries_;            // of the present stretch, in order
  std::size_t next_boundary_ = 0;
  std::int64_t passed_ = 0;                     // passes of it
};

}  // namespace signalbox::truth
