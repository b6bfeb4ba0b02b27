// SPDX-License-Identifier: Apache-2.0
// One inference engine, pass by pass, in virtual time: continuous batching, chunked prefill within
// a token budget, prefix cache, preemption with recompute. Its data-parallel ranks start their
// passes together, so that who arrives meanwhile waits for the fullest of them. Pure: the driver
// brings the time. Shares no code with the predictors that are measured against it.
// Keeps: blocks return to zero when the last sequence ends; one pass at a time; FIFO admission.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/rng.h"
#include "base/time.h"
#include "sim/engine/cache_event.h"
#include "sim/engine/rank.h"
#include "sim/engine/spec.h"
#include "sim/engine/step_clock.h"

namespace signalbox::truth {

class Engine {
 public:
  // `rng` draws the distortion and the noise: the same spec and seed give the same run.
  Engine(const EngineSpec& spec, Rng rng);

  // Whether a sequence of that many tokens in all can ever run here.
  bool fits(std::int64_t tokens) const { return ranks_.front().fits(tokens); }
  int ranks() const { return static_cast<int>(ranks_.size()); }

  // Where a sequence is, as long as it is here.
  struct Place {
    int rank = 0;
    Rank::Slot slot = 0;
  };
  static constexpr int kAnyRank = -1;

  // Queues a sequence, which must fit, at its rank, or where the engine's own balance puts it. The
  // driver advances to `now` first whenever next_event() is earlier than `now`. Sequences submitted
  // at one instant to an idle engine share a pass.
  Place submit(SequenceSpec sequence, Instant now, int rank = kAnyRank);

  // Ends a sequence early: at once while it waits, at the end of the pass while it runs. No output
  // of it follows. False when it is not here. After an advance() to `now`.
  bool abort(SequenceId id, Instant now);

  // Frees the blocks of a sequence without output that has ended here.
  void release(SequenceId id, Instant now);

  // When advance() has something to tell; kNever when the engine is idle.
  Instant next_event() const;

  // Runs everything due up to `now`, appending what happened in order of time.
  void advance(Instant now, std::vector<Output>& out);

  // From now on, of each answer only the first token, the last and SequenceSpec::told_token are
  // told; progress() knows the rest. Passes in which nothing is told are run through at once:
  // everything is as pass by pass, to the bit.
  void tell_less();
  // As of the latest advance(). The sequence is here.
  Rank::Progress progress(const Place& place) const {
    return ranks_[static_cast<std::size_t>(place.rank)].progress(place.slot);
  }

  // As of the latest advance(), these too: of one rank, or of all; steps and their time are those
  // of the engine then.
  Gauges gauges(int rank = kAnyRank) const;
  Counters counters(int rank = kAnyRank) const;
  const Distortion& distortion() const { return clock_.distortion(); }
  std::int64_t block_tokens() const { return block_tokens_; }
  std::uint64_t incarnation() const { return incarnation_; }  // 1 at first
  std::size_t cached_blocks() const;
  // Prompt tokens of the waiting sequences that are not in the cache now. O(their blocks).
  std::int64_t waiting_tokens(int rank = kAnyRank) const;

  // KV events: from publish_cache() on, what happened to a rank's cache since take_cache_events().
  void publish_cache();
  std::vector<CacheEvent> take_cache_events(int rank = 0);

  // Faults, after an advance() to the present.
  void slow(double factor);           // every later pass; 1 heals
  void stall_until(Instant until);    // no pass ends before
  void drop_cache();                  // prefixes are forgotten; sequences go on
  // The process died and is back: every sequence is lost, cache and counters are empty.
  void restart(std::vector<SequenceId>& lost);
  // It gave its memory away, as vLLM's sleep does: every sequence is lost, and the cache.
  void suspend(std::vector<SequenceId>& lost) { clear(lost); }

 private:
  bool empty() const;
  void unblock(Instant now);
  int least_loaded() const;
  // The ranks that `rank` means.
  std::span<const Rank> some(int rank) const;
  void start_pass(Instant at, std::vector<Output>& out);
  void finish_pass(std::vector<Output>& out);
  void begin_stretch();
  void follow_stretch(Instant now);
  void cut_stretch();
  void end_stretch();
  void took(Instant until);
  void clear(std::vector<SequenceId>& lost);

  std::int64_t block_tokens_;
  StepClock clock_;
  std::vector<Rank> ranks_;
  std::uint64_t incarnation_ = 1;
  bool publishes_cache_ = false;
  bool tells_less_ = false;
  std::vector<std::vector<CacheEvent>> cache_events_;  // by rank
  std::int64_t steps_ = 0;
  double busy_seconds_ = 0;

  std::vector<Rank::Pass> pass_;  // in flight, by rank
  std::vector<StepLoad> load_;    // of it
  bool in_pass_ = false;
  bool blocked_ = false;  // nobody runs, and kept blocks leave no room for those who wait
  Instant pass_start_{};
  Instant pass_end_{};
  Instant ready_at_{};  // when the next pass may start, if there is work
  Instant stalled_until_{};

  // Passes on end in which nothing is told: when each will end. Empty: none are planned. The one
  // in flight is number `passed_`.
  std::vector<Instant> ends_;
  std::vector<StepLoad> ahead_;  // scratch of the planning
  std::size_t passed_ = 0;
  StepClock::Mark mark_;  // before they were planned
};

}  // namespace signalbox::truth
