// SPDX-License-Identifier: Apache-2.0
// What one step costs: the table bent by hidden factors, plus noise and the host's part. Pure.
#pragma once

#include <cstdint>
#include <span>

#include "base/rng.h"
#include "base/time.h"
#include "sim/engine/spec.h"

namespace signalbox::truth {

// How far this engine is off its table. No predictor is told; reports may show it.
struct Distortion {
  double fixed = 1;    // the part that every step has
  double prefill = 1;  // what each prefill token adds
  double decode = 1;   // what each decoding sequence and its KV add
};

// What is in one step.
struct StepLoad {
  std::int64_t decoding = 0;        // sequences that decode
  std::int64_t decode_tokens = 0;   // KV tokens they hold in all
  std::int64_t prefill_tokens = 0;  // new prompt tokens
  double prefill_attention = 0;     // Σ new·(prefix + new/2)
  std::int64_t prefilling = 0;      // sequences they belong to
  std::int64_t admitted = 0;        // sequences that entered with this step
  std::int64_t drafted = 0;         // proposed tokens that are verified beside those decoding
  std::int64_t draft_steps = 0;     // of the draft model, one a token of the longest proposal
  std::int64_t lora_loads = 0;      // adapters loaded
  std::int64_t host_tokens = 0;     // brought back from host memory
  std::int64_t tokens() const { return decoding + prefill_tokens; }
};

class StepClock {
 public:
  // Draws the distortion from `rng`, then the noise of each step.
  StepClock(const EngineSpec& spec, Rng rng);

  // One step of all ranks: as long as that of the slowest.
  Duration step(std::span<const StepLoad> ranks);

  // The noise so far. After rewind() it is as if, since mark(), only `steps` steps without prefill
  // had been taken.
  struct Mark {
    Rng rng;
  };
  Mark mark() const { return {rng_}; }
  void rewind(const Mark& mark, std::size_t steps);

  // Every later step takes `factor` times as long; 1 heals.
  void slow(double factor) { slow_ = factor; }
  const Distortion& distortion() const { return distortion_; }

 private:
  struct Parts {
    double work = 0;   // ms that grow with what is in the step
    double fixed = 0;  // ms of any step
  };
  Parts parts_of(const StepLoad& load) const;
  double slowest_ms(std::span<const StepLoad> ranks, double noise) const;

  StepTable table_;
  double noise_;
  double host_step_ms_;
  double host_sequence_ms_;
  double host_admission_ms_;
  double fixed_ttft_ms_;
  double fixed_itl_ms_;
  double experts_share_;
  double draft_ms_;
  double lora_load_ms_;
  double host_token_ms_;
  double slow_ = 1;
  Rng rng_;
  Distortion distortion_;
};

}  // namespace signalbox::truth
