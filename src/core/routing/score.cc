// SPDX-License-Identifier: Apache-2.0
// The score of recorded inputs. Pure.
#include "core/routing/score.h"

#include <algorithm>

#include "core/routing/formula.h"

namespace signalbox::routing {
namespace {

float step(const Inputs& in, float batch, float kv) {
  return in.d + in.e1 * std::min(batch, in.batch_break) +
         in.e2 * std::max(0.0f, batch - in.batch_break) + in.f * kv;
}

}  // namespace

Place<float> place(const Ask& ask, const Inputs& in) {
  Place<float> p;
  p.reach = in.reach + in.pass_wait;
  p.wait = in.wait;
  p.b = in.b;
  p.c = in.c;
  p.queued = in.queued;
  // Decoding requests take one token of the budget each; a sixteenth is always left to prefill.
  p.pass_per_token = 1 / std::max({in.chunk - in.decoding, in.chunk / 16, 1.0f});
  p.pass = in.pass;
  p.kv_wait = in.kv_wait;
  p.step_next = step(in, in.in_flight + 1, in.kv);
  p.e = in.in_flight + 1 > in.batch_break ? in.e2 : in.e1;
  p.f = in.f;
  p.in_flight = in.in_flight;
  p.arrivals = in.arrivals;
  p.overlap = in.overlap;
  p.money = ask.seconds_per_usd * in.usd_per_second;
  return p;
}

Terms score(const Ask& ask, const Inputs& in) {
  const Share<float> s = share(ask, in.cached);
  const Parts<float> r = predict(constants(ask), place(ask, in), s);
  const float w = ask.latency_weight;
  Terms t;
  t.prefill = r.prefill;
  t.ttft = r.ttft;
  t.tpot = r.tpot;
  t.e2e = r.e2e;
  t.violation = r.violation;
  t.reach = w * in.reach;
  t.wait = w * in.wait;
  t.own_prefill = w * r.prefill;
  t.passes = w * (r.passes + in.pass_wait);
  t.kv_wait = w * in.kv_wait;
  t.own_decode = r.tpot * ask.output;
  t.imposed_stall = r.stall;
  t.imposed_arrivals = r.arrivals;
  t.imposed_step = r.step;
  t.shadow = s.shadow;
  t.money = r.money;
  t.total = r.total;
  return t;
}

bool ranks_before(const Terms& a, const Terms& b) {
  if (a.violation != b.violation) return a.violation < b.violation;
  return a.total < b.total;
}

bool nearly_tied(const Terms& best, const Terms& other, float band) {
  return other.violation <= best.violation * (1 + band) && other.total <= best.total * (1 + band);
}

}  // namespace signalbox::routing
