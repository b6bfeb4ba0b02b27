// SPDX-License-Identifier: Apache-2.0
// Sums over ranks and incarnations, and the engine of a profile.
#include "sim/engine/spec.h"

namespace signalbox::truth {

EngineSpec EngineSpec::from(const Profile& profile) {
  EngineSpec spec;
  spec.table = StepTable(profile.prefill, profile.decode);
  spec.kv_tokens = profile.kv_tokens;
  return spec;
}

void Counters::add(const Counters& other) {
  prompt_tokens += other.prompt_tokens;
  cached_tokens += other.cached_tokens;
  computed_tokens += other.computed_tokens;
  generated_tokens += other.generated_tokens;
  drafted_tokens += other.drafted_tokens;
  accepted_tokens += other.accepted_tokens;
  host_tokens += other.host_tokens;
  lora_loads += other.lora_loads;
  preemptions += other.preemptions;
  finished += other.finished;
  aborted += other.aborted;
  steps += other.steps;
  busy_seconds += other.busy_seconds;
  queue_seconds.add(other.queue_seconds);
  prefill_seconds.add(other.prefill_seconds);
  prefill_tokens.add(other.prefill_tokens);
  step_tokens.add(other.step_tokens);
}

void Gauges::add(const Gauges& other) {
  running += other.running;
  waiting += other.waiting;
  kv_blocks += other.kv_blocks;
  kv_blocks_used += other.kv_blocks_used;
}

}  // namespace signalbox::truth
