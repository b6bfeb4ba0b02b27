// SPDX-License-Identifier: Apache-2.0
// One inference engine, iteration by iteration, in virtual time: continuous batching, chunked
// prefill within a token budget, prefix cache, preemption with recompute. Pure: the driver brings
// the time. Shares no code with the predictors that are measured against it.
// Keeps: blocks return to zero when the last sequence ends; one step at a time; FIFO admission.
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "base/rng.h"
#include "base/time.h"
#include "sim/engine/block_cache.h"
#include "sim/engine/cache_event.h"
#include "sim/engine/spec.h"
#include "sim/engine/step_clock.h"

namespace signalbox::truth {

class Engine {
 public:
  // `rng` draws the distortion and the noise: the same spec and seed give the same run.
  Engine(const EngineSpec& spec, Rng rng);

  // Whether a sequence of that many tokens in all can ever run here.
  bool fits(std::int64_t tokens) const;

  // Queues a sequence, which must fit. The driver advances to `now` first whenever next_event() is
  // earlier than `now`. Sequences submitted at one instant to an idle engine share a step.
  void submit(SequenceSpec sequence, Instant now);

  // Ends a sequence early: at once while it waits, at the end of the step while it runs. No output
  // of it follows. False when it is not here.
  bool abort(SequenceId id, Instant now);

  // When advance() has something to do; kNever when the engine is idle.
  Instant next_event() const;

  // Runs everything due up to `now`, appending what happened in order of time.
  void advance(Instant now, std::vector<Output>& out);

  Gauges gauges() const;
  const Counters& counters() const { return counters_; }
  const Distortion& distortion() const { return clock_.distortion(); }
  std::int64_t block_tokens() const { return block_tokens_; }
  std::uint64_t incarnation() const { return incarnation_; }  // 1 at first
  std::size_t cached_blocks() const { return cache_.cached(); }
  // Prompt tokens of the waiting sequences that are not in the cache now. O(their blocks).
  std::int64_t waiting_tokens() const;

  // KV events: from publish_cache() on, what happened to the cache since take_cache_events().
  void publish_cache();
  std::vector<CacheEvent> take_cache_events();

  // Faults.
  void slow(double factor) { clock_.slow(factor); }  // every later step; 1 heals
  void stall_until(Instant until);                   // no step ends before
  void drop_cache() { cache_.forget(); }             // prefixes are forgotten; sequences go on
  // The process died and is back: every sequence is lost, cache and counters are empty.
  void restart(std::vector<SequenceId>& lost);

 private:
  using Slot = std::uint32_t;

  struct Sequence {
    SequenceSpec spec;
    std::vector<BlockCache::Block> blocks;
    std::int64_t computed = 0;   // tokens whose KV is there
    std::int64_t produced = 0;   // tokens of the answer
    std::int64_t cached = 0;     // prompt tokens found when first admitted
    std::size_t published = 0;   // leading blocks that others may find
    Instant arrived{};
    Instant admitted = kNever;   // for the first time
    bool aborted = false;        // leaves at the end of the step
    std::int64_t total() const { return spec.prompt_tokens + produced; }
  };
  struct Scheduled {
    Slot slot;
    std::int64_t tokens;  // computed in this step
  };

  // engine_schedule.cc
  void start_step(Instant at, std::vector<Output>& out);
  void schedule_running(std::int64_t& budget, StepLoad& load);
  void schedule_waiting(Instant at, std::int64_t& budget, StepLoad& load, std::vector<Output>& out);
  bool reserve(Sequence& sequence, std::int64_t tokens);
  void preempt(Slot slot);
  void schedule(Slot slot, std::int64_t tokens, StepLoad& load);

  // engine.cc
  void finish_step(std::vector<Output>& out);
  void produce(Sequence& sequence, std::vector<Output>& out);
  void publish(Sequence& sequence);
  void release_blocks(Sequence& sequence);
  void retire(Slot slot);
  void drop_ended();

  std::int64_t block_tokens_;
  std::int64_t sequences_max_;
  std::int64_t step_tokens_max_;
  BlockCache cache_;
  StepClock clock_;
  Counters counters_;
  std::uint64_t incarnation_ = 1;
  bool publishes_cache_ = false;
  std::vector<CacheEvent> cache_events_;

  std::vector<Sequence> slots_;
  std::vector<Slot> free_slots_;
  std::unordered_map<SequenceId, Slot> by_id_;  // looked up, never walked
  std::deque<Slot> waiting_;                    // the head is admitted next
  std::vector<Slot> running_;                   // oldest admission first
  std::vector<Scheduled> step_;                 // of the step in flight
  bool preempted_ = false;                      // while the present step was made

  bool in_step_ = false;
  Instant step_start_{};
  Instant step_end_{};
  Instant ready_at_{};  // when the next step may start, if there is work
  Instant stalled_until_{};
};

}  // namespace signalbox::truth
