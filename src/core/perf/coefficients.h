// SPDX-License-Identifier: Apache-2.0
// The physical form of an engine's speed, in seconds and tokens:
//
//   prefill(new, prefix) = a + b·new + c·new·(prefix + new/2)
//   step(batch, kv)      = d + e1·min(batch, B) + e2·max(0, batch − B) + f·kv
//
// kv is the sum of the KV lengths of the batch. Dense models have e1 = e2. A step that carries a
// prefill chunk lasts b·new + c·new·ctx longer. (shared form of the engine catalogue; see README)
#pragma once

#include <algorithm>
#include <cstdint>

namespace signalbox::perf {

struct Coefficients {
  double a = 0;   // s
  double b = 0;   // s per new token
  double c = 0;   // s per new token and context token
  double d = 0;   // s
  double e1 = 0;  // s per sequence up to `batch_break`
  double e2 = 0;  // s per sequence beyond it
  double f = 0;   // s per KV token
  double batch_break = 1e9;
  std::int64_t chunk_tokens = 8192;     // prefill token budget of one pass
  std::int64_t kv_capacity_tokens = 0;  // 0: unknown, treated as unlimited
  int sequences_max = 0;                // 0: unknown

  // Seconds of engine time that `fresh` uncached tokens behind `cached` ones take, without `a`.
  double prefill_work(double fresh, double cached) const {
    return fresh * (b + c * (cached + fresh / 2));
  }
  double prefill(double fresh, double cached) const { return a + prefill_work(fresh, cached); }
  double step(double batch, double kv) const {
    return d + e1 * std::min(batch, batch_break) + e2 * std::max(0.0, batch - batch_break) + f * kv;
  }
};

}  // namespace signalbox::perf
