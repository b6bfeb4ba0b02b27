// SPDX-License-Identifier: Apache-2.0
// Steps that mix decode and prefill: the fixed part once, both slopes added.
#include "sim/engine/step_clock.h"

#include <algorithm>
#include <cmath>

namespace signalbox::truth {

EngineSpec EngineSpec::from(const Profile& profile) {
  EngineSpec spec;
  spec.table = StepTable(profile.prefill, profile.decode);
  spec.kv_tokens = profile.kv_tokens;
  return spec;
}

StepClock::StepClock(const EngineSpec& spec, Rng rng)
    : table_(spec.table),
      noise_(spec.noise),
      host_step_ms_(spec.host_step_us * 1e-3),
      host_sequence_ms_(spec.host_sequence_us * 1e-3),
      host_admission_ms_(spec.host_admission_us * 1e-3),
      fixed_ttft_ms_(spec.fixed_ttft_ms),
      fixed_itl_ms_(spec.fixed_itl_ms),
      rng_(rng) {
  const auto draw = [&] { return rng_.uniform(1 - spec.distortion, 1 + spec.distortion); };
  distortion_.fixed = draw();
  distortion_.prefill = draw();
  distortion_.decode = draw();
}

Duration StepClock::step(const StepLoad& load) {
  double ms = load.prefill_tokens > 0 ? fixed_ttft_ms_ : fixed_itl_ms_;
  if (ms <= 0) {
    ms = table_ms(load);
    // Lognormal with mean 1: a step is never negative and its slow tail is the longer one.
    if (noise_ > 0) ms *= std::exp(noise_ * rng_.normal() - noise_ * noise_ / 2);
    ms += host_step_ms_ + host_admission_ms_ * static_cast<double>(load.admitted) +
          host_sequence_ms_ * static_cast<double>(load.decoding + load.prefilling);
  }
  return from_seconds(std::max(ms * slow_, 1e-3) * 1e-3);
}

double StepClock::table_ms(const StepLoad& load) const {
  double fixed = load.prefill_tokens > 0 ? table_.prefill_fixed_ms() : 0;
  double ms = 0;
  if (load.decoding > 0) {
    fixed = table_.decode_fixed_ms();
    const auto batch = static_cast<double>(load.decoding);
    const double all = table_.decode_ms(batch, static_cast<double>(load.decode_tokens) / batch);
    ms += distortion_.decode * std::max(0.0, all - fixed);
  }
  if (load.prefill_tokens > 0) {
    // Several prefills cost the linear part of their sum and the attention of each: one sequence
    // with the same sum and a prefix that gives the same attention.
    const auto fresh = static_cast<double>(load.prefill_tokens);
    const double prefix = load.prefill_attention / fresh - fresh / 2;
    const double all = table_.prefill_ms(fresh, prefix);
    ms += distortion_.prefill * std::max(0.0, all - table_.prefill_fixed_ms());
  }
  return ms + distortion_.fixed * fixed;
}

}  // namespace signalbox::truth
