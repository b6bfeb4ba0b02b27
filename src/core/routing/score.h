// SPDX-License-Identifier: Apache-2.0
// The score of one place for one request: the time that serving it there adds to everybody. A pure
// function of recorded inputs, so that a stored decision can be taken apart later.
//
//   P     = b·u + c·u·(cached + u/2)
//   T     = reach + W + P + ceil((Q + u)/(chunk − decoding))·D + H + M
//   score = w·T + L·s' + P·n + w·P·λ·T + Δs·overlap/2 + Shadow·P_ref + money
//
// u = uncached prompt tokens, at least 1. All times in seconds, all sizes in tokens, all ≥ 0.
#pragma once

#include "core/model/ids.h"

namespace signalbox::routing {

// What is the same for all places of one decision.
struct Ask {
  float prompt = 1;           // prompt tokens
  float output = 1;           // L, mean output tokens; a whole number
  float latency_weight = 1;   // w
  float seconds_per_usd = 0;  // price of money
  float shadow = 0;           // n̄·ρ/(1 − ρ): knock-on of a second of prefill in this fleet
  float mean_b = 0;           // prefill coefficients of the fleet's mean speed, for P_ref
  float mean_c = 0;
  float ttft_max = 0;         // objectives in seconds; 0: none
  float tpot_max = 0;
  float e2e_max = 0;
  float tie_band = 0;         // the band that was in force
};

// What was known of one place when it was scored.
struct Inputs {
  model::EndpointId endpoint;
  float cached = 0;         // prompt tokens held there
  float reach = 0;          // network and wake time
  float wait = 0;           // W: prefill seconds sent there without first token, less elapsed
  float queued = 0;         // Q: their tokens
  float kv_wait = 0;        // M: until completions free enough KV
  float in_flight = 0;      // n: ours and others'
  float decoding = 0;       // of these, past their first token
  float kv = 0;             // tokens of all in flight
  float pass = 0;           // D: what a pass lasts beside its prefill: the decode step in it, or,
                            // while none decodes, what any pass costs
  float pass_wait = 0;      // H: until the next pass begins, half a decode step in the mean
  float arrivals = 0;       // λ: requests per second
  float overlap = 0;        // Σ min(remaining output, L) of those in flight
  float usd_per_second = 0;
  float uncertainty = 0;    // relative; widened while metrics are stale; no part of the score
  float b = 0, c = 0, d = 0, e1 = 0, e2 = 0, f = 0;  // see perf::Coefficients
  float batch_break = 1e9f;
  float chunk = 8192;       // token budget of a pass
};

// What the inputs predict, and the score by parts; the parts from `reach` to `money` sum up to
// `total`, with w applied.
struct Terms {
  float prefill = 0;    // P
  float ttft = 0;       // T
  float tpot = 0;       // s': step time with this request and all in flight
  float e2e = 0;        // T + L·s'
  float violation = 0;  // largest relative excess over an objective; 0: all met

  float reach = 0;
  float wait = 0;
  float own_prefill = 0;
  float passes = 0;            // D for each of its prefill passes, and H
  float kv_wait = 0;
  float own_decode = 0;
  float imposed_stall = 0;     // P·n
  float imposed_arrivals = 0;  // w·P·λ·T
  float imposed_step = 0;      // Δs·overlap/2
  float shadow = 0;
  float money = 0;             // seconds_per_usd · price · (P + L·Δs)
  float total = 0;
};

Terms score(const Ask& ask, const Inputs& inputs);

// Whether `a` ranks before `b`: less violation first, then less score.
bool ranks_before(const Terms& a, const Terms& b);

// Whether `other` is as good as `best` within the band: both violation and score.
bool nearly_tied(const Terms& best, const Terms& other, float band);

}  // namespace signalbox::routing
