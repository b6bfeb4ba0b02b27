// SPDX-License-Identifier: Apache-2.0
// What an operator measures offline on an idle engine and writes into a router's configuration.
// The router sees the model of engine, not the hidden distortion of each.
#pragma once

#include <cstdint>

#include "sim/engine/spec.h"

namespace signalbox::peers {

struct Profile {
  // Seconds of prefill: a + b·u + c·u·(cached + u/2) for u uncached tokens.
  double a = 0.01;
  double b = 2e-5;
  double c = 0;
  std::int64_t block_tokens = 16;
  std::int64_t step_tokens_max = 8192;  // max_num_batched_tokens

  double prefill_seconds(std::int64_t uncached, std::int64_t cached) const;
  // Tokens per second of one unloaded chunk of step_tokens_max tokens.
  double peak_prefill() const;
};

// Least squares of relative errors over the step table: an offline polynomial fit.
Profile measure(const truth::EngineSpec& spec);

}  // namespace signalbox::peers
