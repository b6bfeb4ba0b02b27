// SPDX-License-Identifier: Apache-2.0
// What happens to one request on one engine: time to first token, step time, end-to-end time, each
// with its standard deviation. Pure functions of plain values, in seconds and tokens.
#pragma once

#include "core/perf/calibrator.h"
#include "core/perf/coefficients.h"
#include "core/perf/prior.h"

namespace signalbox::perf {

// What is on the engine when the request gets there.
struct Load {
  double decoding = 0;         // sequences past their first token
  double kv = 0;               // KV tokens of all sequences in flight
  double backlog_seconds = 0;  // prefill work sent there that has no first token yet
  double backlog_tokens = 0;   // its tokens
  double waiting = 0;          // requests behind that backlog
};

// What the request asks for.
struct Work {
  double fresh = 0;      // prompt tokens to compute
  double cached = 0;     // prompt tokens already there
  double output = 0;     // mean output tokens
  double output_sd = 0;  // their deviation; 0: known
};

struct Prediction {
  double prefill = 0;  // own work, s
  double ttft = 0;     // s, without the time to reach the engine
  double ttft_sd = 0;
  double step = 0;     // s, with this request on board
  double step_sd = 0;
  double e2e = 0;      // s
  double e2e_sd = 0;
};

// With decoders on board, prefill goes chunk by chunk beside their steps: ttft = backlog + own work
// + ceil((backlog + own tokens)/(chunk − decoding))·step + step/2. On an engine without decoders
// each pass costs `a` instead. e2e = ttft + output·(step with all in flight).
Prediction predict(const Coefficients& k, const Uncertainty& sigma, const Load& load,
                   const Work& work);

inline Prediction predict(const Belief& belief, const Load& load, const Work& work) {
  return predict(belief.coefficients, belief.sigma, load, work);
}

}  // namespace signalbox::perf
