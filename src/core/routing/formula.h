// SPDX-License-Identifier: Apache-2.0
// The score as a template: V is float for one place, Lanes for four lower bounds at once. Every
// operation is monotone in every field of Place and Share, and rounding is monotone, so the formula
// on component-wise minima never exceeds the formula on any member: no safety margin is needed, and
// equal places have equal bounds. Both instances must keep the same order of operations.
#pragma once

#include <algorithm>

#include "core/routing/score.h"

namespace signalbox::routing {

using Lanes = float __attribute__((vector_size(16)));

inline float at_least(float x, float low) { return x > low ? x : low; }
inline Lanes at_least(Lanes x, Lanes low) { return x > low ? x : low; }
inline float at_most(float x, float high) { return x < high ? x : high; }
inline Lanes at_most(Lanes x, Lanes high) { return x < high ? x : high; }
inline float spread_to(float, float x) { return x; }
inline Lanes spread_to(Lanes, float x) { return Lanes{x, x, x, x}; }

// Next whole number, monotone, for 0 <= x; x is clamped to four millions.
template <typename V>
inline V round_up(V x) {
  const V zero = spread_to(x, 0.0f);
  x = at_most(x, spread_to(x, 4e6f));
  const V whole = (x + 8388608.0f) - 8388608.0f;  // 2^23: rounds to the nearest whole number
  return whole + ((whole < x) ? zero + 1.0f : zero);
}

// One place, its coefficients folded into what the formula needs.
template <typename V>
struct Place {
  V reach;      // until its turn could come: network, wake-up, and the pass that runs
  V wait, b, c, queued, pass_per_token, pass, kv_wait;
  V step_next;  // step with one more request, without that request's tokens
  V e, f;       // what one more request and one more token add to a step
  V in_flight, arrivals, overlap;
  V money;      // seconds_per_usd · USD per second
};

// The part of the request that depends on the cached tokens.
template <typename V>
struct Share {
  V fresh;   // u
  V area;    // u·(cached + u/2)
  V shadow;  // Shadow·P_ref
};

template <typename V>
struct Parts {
  V prefill, passes, ttft, tpot, e2e;
  V stall, arrivals, step, money, total, violation;
};

// Per-decision constants of the formula.
struct Constants {
  float w, output, context, ttft_inverse, tpot_inverse, e2e_inverse;
};

inline Constants constants(const Ask& ask) {
  const auto inverse = [](float limit) { return limit > 0 ? 1 / limit : 0.0f; };
  return {ask.latency_weight,     ask.output,           ask.prompt + ask.output * 0.5f,
          inverse(ask.ttft_max), inverse(ask.tpot_max), inverse(ask.e2e_max)};
}

inline Share<float> share(const Ask& ask, float cached) {
  const float fresh = std::max(1.0f, ask.prompt - cached);
  const float held = std::max(0.0f, ask.prompt - fresh);
  const float area = fresh * (held + fresh * 0.5f);
  return {fresh, area, ask.shadow * (ask.mean_b * fresh + ask.mean_c * area)};
}

template <typename V>
inline Parts<V> predict(const Constants& k, const Place<V>& p, const Share<V>& s) {
  Parts<V> r;
  const V one = spread_to(p.wait, 1.0f);
  const V zero = spread_to(p.wait, 0.0f);
  r.prefill = p.b * s.fresh + p.c * s.area;
  // A thousandth of a pass is forgiven, so that rounding never adds a whole one.
  const V passes = at_least(round_up((p.queued + s.fresh) * p.pass_per_token - 1e-3f), one);
  r.passes = passes * p.pass;
  r.ttft = p.reach + p.wait + r.prefill + r.passes + p.kv_wait;
  r.tpot = p.step_next + p.f * k.context;
  const V longer = p.e + p.f * k.context;  // Δs
  const V decode = r.tpot * k.output;
  r.e2e = r.ttft + decode;
  r.stall = r.prefill * p.in_flight;
  r.arrivals = r.prefill * k.w * p.arrivals * r.ttft;
  r.step = longer * p.overlap * 0.5f;
  r.money = p.money * (r.prefill + longer * k.output);
  r.total = r.ttft * k.w + decode + r.stall + r.arrivals + r.step + s.shadow + r.money;
  r.violation = at_least(r.ttft * k.ttft_inverse, r.tpot * k.tpot_inverse);
  r.violation = at_least(at_least(r.violation, r.e2e * k.e2e_inverse) - one, zero);
  return r;
}

Place<float> place(const Ask& ask, const Inputs& inputs);

}  // namespace signalbox::routing
