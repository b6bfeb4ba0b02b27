// SPDX-License-Identifier: Apache-2.0
// The queueing form of one engine.
#include "core/perf/predict.h"

#include <algorithm>
#include <cmath>

namespace signalbox::perf {

Prediction predict(const Coefficients& k, const Uncertainty& sigma, const Load& load,
                   const Work& work) {
  Prediction p;
  p.prefill = k.prefill_work(work.fresh, work.cached);
  const double chunk = static_cast<double>(k.chunk_tokens);
  const double room = std::max(1.0, chunk - load.decoding);
  const double passes = std::max(1.0, std::ceil((load.backlog_tokens + work.fresh) / room));
  const double beside = load.decoding > 0 ? k.step(load.decoding, load.kv) : 0;
  const double fixed = load.decoding > 0 ? 0 : passes * k.a;
  const double steps = load.decoding > 0 ? (passes + 0.5) * beside : 0;
  const double prefills = load.backlog_seconds + p.prefill;
  p.ttft = fixed + prefills + steps;
  const double kv = load.kv + work.fresh + work.cached + work.output / 2;
  p.step = k.step(load.decoding + load.waiting + 1, kv);
  const double after = std::max(0.0, work.output - 1);
  p.e2e = p.ttft + after * p.step;
  const double of_prefill = fixed * sigma.fixed + prefills * sigma.prefill;  // share their scatter
  p.ttft_sd = std::hypot(of_prefill, steps * sigma.decode);
  p.step_sd = p.step * sigma.decode;
  // Steps before and after the first token share the decode factor's error.
  const double of_decode = (steps + after * p.step) * sigma.decode;
  p.e2e_sd = std::hypot(std::hypot(of_prefill, of_decode), work.output_sd * p.step);
  return p;
}

}  // namespace signalbox::perf
