// SPDX-License-Identifier: Apache-2.0
// Draws kinds of load from a stream of its own.
#include "sim/random_load.h"

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <utility>

namespace signalbox::sim {
namespace {

template <typename T>
T pick(Rng& rng, std::initializer_list<T> choices) {
  return choices.begin()[rng.below(choices.size())];
}

// Rounded to milliseconds, so that a scenario can be written down.
Duration seconds(double s) { return std::chrono::milliseconds(static_cast<std::int64_t>(s * 1e3)); }

std::int64_t about(double median, Rng& rng) {
  return 1 + static_cast<std::int64_t>(median * rng.uniform(0.2, 2));
}

// Adds a piece behind the prompt so far.
void append(trace::Trace& trace, trace::Call& call, std::uint64_t content, std::int64_t tokens,
            bool common) {
  trace.pieces.push_back({call.last, content, tokens, common});
  call.last = static_cast<std::int32_t>(trace.pieces.size() - 1);
  call.prompt_tokens += tokens;
}

void add_session(trace::Trace& trace, const Load& load, Rng& rng) {
  const auto first = static_cast<std::int32_t>(trace.calls.size());
  const auto calls = static_cast<std::int32_t>(1 + rng.below(6));
  const std::uint64_t system = rng.below(3);
  for (std::int32_t i = 0; i < calls; ++i) {
    const std::uint64_t name = trace::mixed(40, trace.calls.size());
    trace::Call call;
    call.output_tokens = about(load.answer.median, rng);
    call.answer = trace::mixed(name, 1);
    if (i == 0) {
      append(trace, call, trace::mixed(41, system),
             about(load.system.median, rng) / 100 * 100 + 1, true);
    } else {
      const auto back = static_cast<std::int32_t>(rng.chance(0.8) ? 1 : 1 + rng.below(
          static_cast<std::uint64_t>(i)));
      call.after = first + i - back;
      const trace::Call& earlier = trace.calls[static_cast<std::size_t>(call.after)];
      call.at = earlier.at + seconds(1);
      call.think = seconds(rng.uniform(0, 2) * to_seconds(load.think));
      call.last = earlier.last;
      call.prompt_tokens = earlier.prompt_tokens;
      append(trace, call, earlier.answer, earlier.output_tokens, false);
    }
    const double length = load.turn.median * (rng.chance(0.02) ? 200 : 1);
    append(trace, call, name, about(length, rng), false);
    trace.lasts = std::max(trace.lasts, call.at);
    trace.calls.push_back(call);
  }
  trace.sessions.push_back({first, calls, Duration(-1)});
}

Arrivals random_arrivals(Rng& rng, double run_seconds) {
  Arrivals arrivals;
  arrivals.cv = pick(rng, {1.0, 1.0, 0.0, 0.5, 4.0});
  if (rng.chance(0.25)) {
    arrivals.bursts.on = seconds(rng.uniform(0.5, 10));
    arrivals.bursts.off = seconds(rng.uniform(0.5, 20));
    arrivals.bursts.quiet = pick(rng, {0.0, 0.1, 0.5});
  }
  if (rng.chance(0.3)) {
    using Between = trace::RateCurve::Between;
    arrivals.curve.between = pick(rng, {Between::Linear, Between::Step});
    const double step = run_seconds / 5;
    for (int i = 0; i < 4; ++i) {
      const double rate = rng.uniform(0.2, 2);
      arrivals.curve.points.push_back({seconds(step * i), rate});
    }
    if (rng.chance(0.5)) arrivals.curve.period = seconds(step * 4);
  }
  return arrivals;
}

Sdk random_sdk(Rng& rng) {
  Sdk sdk;
  sdk.timeout = seconds(pick(rng, {600.0, 600.0, 0.0, 10.0, 1.0}));
  sdk.retries_max = pick(rng, {2, 2, 0, 5});
  sdk.retry_after_max = seconds(pick(rng, {120.0, 5.0}));
  return sdk;
}

}  // namespace

trace::Trace random_sessions(const Load& load, Rng& rng) {
  trace::Trace trace;
  const std::uint64_t sessions = 1 + rng.below(40);
  for (std::uint64_t i = 0; i < sessions; ++i) add_session(trace, load, rng);
  return trace;
}

trace::Trace random_open_loop(const Load& load, double per_second, Rng& rng) {
  trace::Trace trace;
  while (static_cast<std::int64_t>(trace.calls.size()) < load.requests) {
    add_session(trace, load, rng);
  }
  trace.sessions.clear();
  const double length = static_cast<double>(trace.calls.size()) / per_second;
  for (trace::Call& call : trace.calls) {
    call.at = seconds(rng.uniform(0, length));
    call.after = -1;
    call.think = {};
  }
  trace::sort_by_time(trace.calls);
  trace.lasts = trace.calls.back().at;
  return trace;
}

void add_random_kinds(Load& load, double per_second, std::uint64_t seed) {
  Rng rng(seed, "load kinds");
  const double run_seconds = static_cast<double>(load.requests) / per_second;
  load.arrivals = random_arrivals(rng, run_seconds);
  load.sdk = random_sdk(rng);
  load.pressers = pick(rng, {0.0, 0.0, 0.05, 0.5});
  load.impatience = seconds(rng.uniform(0.01, 3));
  if (rng.chance(0.1)) load.lasts = seconds(run_seconds / 2);
  if (rng.chance(0.1)) load.warm_up = seconds(run_seconds / 4);
  // A slow fleet, and a curve that is low: the run has to end before it counts as stuck.
  if (load.lasts == Duration::zero() && run_seconds > 2000) load.lasts = std::chrono::hours(3);
  if (rng.chance(0.2)) {
    load.answer.quantiles = {{0.1, 1}, {0.5, load.answer.median}, {1, load.answer.median * 4}};
  }
  if (!rng.chance(0.4)) return;
  load.too_long = pick(rng, {TooLong::Cut, TooLong::Skip});
  if (rng.chance(0.4)) {
    load.trace = std::make_shared<trace::Trace>(random_open_loop(load, per_second, rng));
    return;
  }
  // Few sessions may take days over their calls.
  if (load.lasts == Duration::zero()) load.lasts = seconds(std::max(120.0, 4 * run_seconds));
  trace::Trace sessions = random_sessions(load, rng);
  if (rng.chance(0.3)) {
    for (trace::Session& session : sessions.sessions) session.start = seconds(rng.uniform(0, 9));
    sessions.lasts = std::max(sessions.lasts, seconds(9));
  } else if (rng.chance(0.5)) {
    load.sessions_at_once = pick(rng, {1, 8, 40});
    load.ramp = seconds(pick(rng, {0.0, 5.0}));
  }
  load.trace = std::make_shared<trace::Trace>(std::move(sessions));
}

}  // namespace signalbox::sim
