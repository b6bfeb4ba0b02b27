// SPDX-License-Identifier: Apache-2.0
// Steps that mix decode and prefill: the fixed part once, both slopes added. Of several ranks the
// slowest counts.
#include "sim/engine/step_clock.h"

#include <algorithm>
#include <cmath>

namespace signalbox::truth {

StepClock::StepClock(const EngineSpec& spec, Rng rng)
    : table_(spec.table),
      noise_(spec.noise),
      host_step_ms_(spec.host_step_us * 1e-3),
      host_sequence_ms_(spec.host_sequence_us * 1e-3),
      host_admission_ms_(spec.host_admission_us * 1e-3),
      fixed_ttft_ms_(spec.fixed_ttft_ms),
      fixed_itl_ms_(spec.fixed_itl_ms),
      experts_share_(spec.experts_share),
      draft_ms_(spec.draft_ms),
      lora_load_ms_(spec.lora_load_ms),
      host_token_ms_(spec.host_token_us * 1e-3),
      rng_(rng) {
  const auto draw = [&] { return rng_.uniform(1 - spec.distortion, 1 + spec.distortion); };
  distortion_.fixed = draw();
  distortion_.prefill = draw();
  distortion_.decode = draw();
}

Duration StepClock::step(std::span<const StepLoad> ranks) {
  const bool prefills = std::any_of(ranks.begin(), ranks.end(), [](const StepLoad& load) {
    return load.prefill_tokens > 0;
  });
  double ms = prefills ? fixed_ttft_ms_ : fixed_itl_ms_;
  if (ms <= 0) {
    // Lognormal with mean 1: a step is never negative and its slow tail is the longer one.
    const double noise =
        noise_ > 0 ? std::exp(noise_ * rng_.normal() - noise_ * noise_ / 2) : 1;
    ms = slowest_ms(ranks, noise);
  }
  return from_seconds(std::max(ms * slow_, 1e-3) * 1e-3);
}

double StepClock::slowest_ms(std::span<const StepLoad> ranks, double noise) const {
  double slowest = 0;
  double all = 0;  // of what is shared
  for (const StepLoad& load : ranks) {
    const Parts parts = parts_of(load);
    all += parts.work * experts_share_;
    const double host = host_step_ms_ + host_admission_ms_ * static_cast<double>(load.admitted) +
                        host_sequence_ms_ * static_cast<double>(load.decoding + load.prefilling) +
                        lora_load_ms_ * static_cast<double>(load.lora_loads) +
                        host_token_ms_ * static_cast<double>(load.host_tokens);
    slowest = std::max(slowest, (parts.work * (1 - experts_share_) + parts.fixed) * noise + host);
  }
  return slowest + all / static_cast<double>(ranks.size()) * noise;
}

void StepClock::rewind(const Mark& mark, std::size_t steps) {
  rng_ = mark.rng;
  if (noise_ <= 0 || fixed_itl_ms_ > 0) return;
  for (std::size_t i = 0; i < steps; ++i) rng_.normal();
}

StepClock::Parts StepClock::parts_of(const StepLoad& load) const {
  Parts parts;
  double fixed = load.prefill_tokens > 0 ? table_.prefill_fixed_ms() : 0;
  if (load.decoding > 0) {
    fixed = table_.decode_fixed_ms();
    // Verifying a proposal costs as much as decoding for so many sequences, but for their KV.
    const auto batch = static_cast<double>(load.decoding + load.drafted);
    fixed += draft_ms_ * static_cast<double>(load.draft_steps);
    const double all = table_.decode_ms(batch, static_cast<double>(load.decode_tokens) / batch);
    parts.work += distortion_.decode * std::max(0.0, all - table_.decode_fixed_ms());
  }
  if (load.prefill_tokens > 0) {
    // Several prefills cost the linear part of their sum and the attention of each: one sequence
    // with the same sum and a prefix that gives the same attention.
    const auto fresh = static_cast<double>(load.prefill_tokens);
    const double prefix = load.prefill_attention / fresh - fresh / 2;
    const double all = table_.prefill_ms(fresh, prefix);
    parts.work += distortion_.prefill * std::max(0.0, all - table_.prefill_fixed_ms());
  }
  parts.fixed = distortion_.fixed * fixed;
  return parts;
}

}  // namespace signalbox::truth
