// SPDX-License-Identifier: Apache-2.0
// What makes one engine differ from another, what a sequence asks of it, what it says back.
#pragma once

#include <cstdint>
#include <vector>

#include "base/describe.h"
#include "base/time.h"
#include "sim/engine/catalogue.h"
#include "sim/engine/step_table.h"

namespace signalbox::truth {

struct EngineSpec {
  StepTable table = StepTable::formula(10, 0.02, 1e-6, 8, 0.05, 4e-5);
  std::int64_t kv_tokens = 100'000;  // capacity of the KV cache; rounded down to whole blocks
  std::int64_t block_tokens = 16;
  std::int64_t sequences_max = 256;        // that run at once
  std::int64_t step_tokens_max = 8192;     // token budget of a step: longer prefills come in chunks
  double distortion = 0.3;                 // hidden factors are drawn from 1 ± this
  double noise = 0.03;                     // relative deviation of each step
  double host_step_us = 126;               // host time of each step
  double host_sequence_us = 4.4;           // and of each sequence in it
  double host_admission_us = 300;          // and of each sequence admitted
  double fixed_ttft_ms = 0;                // > 0: a step with prefill takes this, tables aside
  double fixed_itl_ms = 0;                 // > 0: a step without prefill takes this, tables aside
  // Data-parallel ranks, each with a KV cache and a queue of its own: what stands above is of one.
  // All start their passes together, and a pass lasts as long as its fullest rank.
  int ranks = 1;
  double experts_share = 0;  // of a token's cost: carried by all ranks together, evenly
  // Speculative decoding: a draft model proposes so many tokens a step, and the step verifies them.
  int draft_tokens = 0;      // 0: none
  double acceptance = 0.7;   // of each, given that those before it were accepted
  double draft_ms = 0.5;     // of the draft model, for each of them
  // Adapters that fit beside the model at once, per rank.
  int lora_slots = 0;        // 0: all of them, always
  double lora_load_ms = 30;  // one that has no slot yet
  // KV blocks that are evicted go to host memory, per rank, and come back when they are wanted.
  std::int64_t host_kv_tokens = 0;  // 0: there is none
  double host_token_us = 3;         // to bring one token back

  // The engine of a profile with its own capacity.
  static EngineSpec from(const Profile& profile);
};

template <typename Visitor>
void describe(Visitor& v, EngineSpec& c) {
  v(c.kv_tokens, "kv_tokens", "Capacity of the KV cache in tokens.", Range{16, 1e9});
  v(c.block_tokens, "block_tokens", "Tokens of a KV block.", Range{1, 4096});
  v(c.sequences_max, "sequences_max", "Sequences that run at once.", Range{1, 65536});
  v(c.step_tokens_max, "step_tokens_max", "Token budget of a step.", Range{1, 1e6});
  v(c.distortion, "distortion", "Hidden speed factors are drawn from 1 ± this.", Range{0, 0.9});
  v(c.noise, "noise", "Relative deviation of the time of a step.", Range{0, 1});
  v(c.host_step_us, "host_step_us", "Host time of a step in microseconds.", Range{0, 1e6});
  v(c.host_sequence_us, "host_sequence_us", "Host time per sequence in a step.", Range{0, 1e6});
  v(c.host_admission_us, "host_admission_us", "Host time per admitted sequence.", Range{0, 1e6});
  v(c.fixed_ttft_ms, "fixed_ttft_ms", "Time of every step with prefill; 0: by table.",
    Range{0, 1e6});
  v(c.fixed_itl_ms, "fixed_itl_ms", "Time of every other step; 0: by table.", Range{0, 1e6});
  v(c.ranks, "ranks",
    "Data-parallel ranks, each with the capacity above; a pass lasts as long as the fullest.",
    Range{1, 1024});
  v(c.experts_share, "experts_share",
    "Share of a token's cost that all ranks carry together, as experts spread over them do.",
    Range{0, 1});
  v(c.draft_tokens, "draft_tokens", "Tokens that a draft model proposes each step; 0: none.",
    Range{0, 16});
  v(c.acceptance, "acceptance", "Chance of a proposed token whose forerunners were accepted.",
    Range{0, 1});
  v(c.draft_ms, "draft_ms", "Time of the draft model for each token it proposes.", Range{0, 1e4});
  v(c.lora_slots, "lora_slots", "Adapters that are loaded at once; 0: all, always.",
    Range{0, 4096});
  v(c.lora_load_ms, "lora_load_ms", "Time of a step for each adapter loaded in it.",
    Range{0, 1e6});
  v(c.host_kv_tokens, "host_kv_tokens", "Capacity of the KV tier in host memory; 0: none.",
    Range{0, 1e10});
  v(c.host_token_us, "host_token_us", "Time to bring a token's KV back from it.", Range{0, 1e5});
}

// Chosen by the driver; never used twice while the first is in the engine.
using SequenceId = std::uint64_t;

struct SequenceSpec {
  SequenceId id = 0;
  std::int64_t prompt_tokens = 1;  // >= 1
  std::int64_t output_tokens = 1;  // >= 0; the truth knows how long the answer becomes
  // A chain over prompt and answer: hash i stands for the tokens [0, (i+1)·block_tokens). Blocks
  // beyond its end are never shared.
  std::vector<std::uint64_t> block_hashes;
  std::int64_t told_token = 0;  // told even by an engine that tells less; 0: none
  std::uint64_t lora = 0;       // adapter; 0: none
  // Prefill and decode by two engines. The first gets no output to make: it ends with its prompt,
  // and keeps its blocks until release(). The second receives the KV of the leading tokens: fewer
  // than the prompt has, since the last one's output is the first token.
  std::int64_t received_tokens = 0;
};

// One thing that happened to a sequence.
struct Output {
  enum class Kind : std::uint8_t {
    Admitted,  // left the waiting queue for the first time; before any prefill
    Token,     // one more token of the answer
    Prefilled, // the prompt is computed, of a sequence without output; its last
  };
  SequenceId id = 0;
  Kind kind = Kind::Token;
  bool first = false;                // the first token of the answer
  bool last = false;                 // the sequence has ended and is forgotten
  std::int64_t token = 0;            // 1 for the first token; 0 for Admitted
  std::int64_t cached_tokens = 0;    // prompt tokens found in the prefix cache when admitted
  Instant at{};
};

struct SumCount {
  double sum = 0;
  std::int64_t count = 0;
  void add(double value) { sum += value, ++count; }
  void add(const SumCount& other) { sum += other.sum, count += other.count; }
};

// Since the engine's start; a restart sets them to zero. Seconds are the engine's own.
struct Counters {
  std::int64_t prompt_tokens = 0;    // of sequences whose prefill is done
  std::int64_t cached_tokens = 0;    // of them, found in the prefix cache
  std::int64_t computed_tokens = 0;  // prefill tokens computed, again after a preemption too
  std::int64_t generated_tokens = 0;
  std::int64_t drafted_tokens = 0;   // proposed by the draft model
  std::int64_t accepted_tokens = 0;  // of them
  std::int64_t host_tokens = 0;      // of cached_tokens and later ones: from host memory
  std::int64_t lora_loads = 0;
  std::int64_t preemptions = 0;
  std::int64_t finished = 0;
  std::int64_t aborted = 0;
  std::int64_t steps = 0;
  double busy_seconds = 0;           // time in steps
  SumCount queue_seconds;            // arrival to admission, when admitted
  SumCount prefill_seconds;          // admission to first token, at the first token
  SumCount prefill_tokens;           // uncached prompt tokens, at the first token
  SumCount step_tokens;              // tokens of each step

  void add(const Counters& other);
};

struct Gauges {
  std::int64_t running = 0;
  std::int64_t waiting = 0;
  std::int64_t kv_blocks = 0;       // capacity
  std::int64_t kv_blocks_used = 0;  // held by sequences; cached and unreferenced ones are free
  void add(const Gauges& other);
  double kv_usage() const {
    return kv_blocks > 0 ? static_cast<double>(kv_blocks_used) / static_cast<double>(kv_blocks) : 0;
  }
};

}  // namespace signalbox::truth
