// SPDX-License-Identifier: Apache-2.0
// Cuts, scales, repeats, counts.
#include "sim/trace/operations.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace signalbox::trace {
namespace {

constexpr std::int64_t kCopiesMax = 1'000'000;
constexpr Duration kMinute = std::chrono::minutes(1);

std::size_t size(std::int32_t index) { return static_cast<std::size_t>(index); }

// Adds one session of `from`, as a repetition of that number.
void add_session(Trace& to, const Trace& from, const Session& session, std::uint32_t copy) {
  const auto first = static_cast<std::int32_t>(to.calls.size());
  for (std::int32_t i = 0; i < session.calls; ++i) {
    Call call = from.calls[size(session.first + i)];
    if (call.after >= 0) call.after += first - session.first;
    call.copy += copy;
    to.calls.push_back(call);
  }
  to.sessions.push_back({first, session.calls, session.start});
}

Duration scaled(Duration time, double factor) {
  return Duration(std::llround(static_cast<double>(time.count()) / factor));
}

Result<Trace> scale_to(const Trace& trace, double now, double wanted) {
  CHECK(wanted > 0);
  if (!has_starts(trace)) {
    return invalid("the trace is of sessions whose starts nobody knows; set how many sessions "
                   "start per second, or how many there are at once.");
  }
  if (!(now > 0)) {
    return invalid("the trace lasts no time, so it has no rate; take a longer part of it.");
  }
  return scale_rate(trace, wanted / now);
}

double quantile(std::vector<std::int64_t>& values, double share) {
  const auto rank = static_cast<std::size_t>(share * static_cast<double>(values.size() - 1) + 0.5);
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(rank);
  std::nth_element(values.begin(), at, values.end());
  return static_cast<double>(*at);
}

double busiest_minute(const Trace& trace) {
  std::size_t most = 0;
  std::size_t from = 0;
  for (std::size_t i = 0; i < trace.calls.size(); ++i) {
    while (trace.calls[i].at - trace.calls[from].at >= kMinute) ++from;
    most = std::max(most, i + 1 - from);
  }
  return static_cast<double>(most) / to_seconds(kMinute);
}

}  // namespace

bool has_starts(const Trace& trace) {
  return std::all_of(trace.sessions.begin(), trace.sessions.end(),
                     [](const Session& s) { return s.start >= Duration::zero(); });
}

Trace slice(const Trace& trace, Duration start, Duration length) {
  Trace out;
  out.pieces = trace.pieces;
  out.lasts = length;
  const auto within = [&](Duration at) { return at >= start && at - start < length; };
  if (trace.sessions.empty()) {
    for (Call call : trace.calls) {
      if (!within(call.at)) continue;
      call.at -= start;
      out.calls.push_back(call);
    }
    return out;
  }
  if (!has_starts(trace)) out.lasts = trace.lasts;
  for (Session session : trace.sessions) {
    const bool known = session.start >= Duration::zero();
    if (known && !within(session.start)) continue;
    if (known) session.start -= start;
    add_session(out, trace, session, 0);
  }
  return out;
}

Trace take_sessions(const Trace& trace, std::size_t first, std::size_t count) {
  Trace out;
  out.pieces = trace.pieces;
  out.lasts = trace.lasts;
  for (std::size_t i = first; i < trace.sessions.size() && i - first < count; ++i) {
    add_session(out, trace, trace.sessions[i], 0);
  }
  return out;
}

Trace scale_rate(const Trace& trace, double factor) {
  CHECK(factor > 0);
  Trace out = trace;
  out.lasts = scaled(trace.lasts, factor);
  for (Session& session : out.sessions) {
    if (session.start >= Duration::zero()) session.start = scaled(session.start, factor);
  }
  if (!out.sessions.empty()) return out;
  for (Call& call : out.calls) call.at = scaled(call.at, factor);
  return out;
}

Trace splice(const Trace& trace, Duration length) {
  const bool fillable = trace.lasts > Duration::zero() && !trace.calls.empty() &&
                        has_starts(trace) && length > Duration::zero();
  if (!fillable) return trace;
  // The gap from the last call to the first of the next repetition is a mean one.
  const auto starts = static_cast<std::int64_t>(
      trace.sessions.empty() ? trace.calls.size() : trace.sessions.size());
  const Duration period = trace.lasts + std::max(Duration(1), trace.lasts / starts);
  Trace out;
  out.pieces = trace.pieces;
  out.lasts = length;
  for (std::int64_t copy = 0; copy < kCopiesMax; ++copy) {
    const Duration begin = period * copy;
    if (begin >= length) break;
    const auto name = static_cast<std::uint32_t>(copy);
    for (Session session : trace.sessions) {
      session.start += begin;
      if (session.start < length) add_session(out, trace, session, name);
    }
    if (!trace.sessions.empty()) continue;
    for (Call call : trace.calls) {
      call.at += begin;
      call.copy += name;
      if (call.at < length) out.calls.push_back(call);
    }
  }
  return out;
}

Trace spread(const Trace& trace, Duration step, Rng& rng) {
  if (!trace.sessions.empty() || step <= Duration::zero()) return trace;
  Trace out = trace;
  for (Call& call : out.calls) {
    call.at += Duration(static_cast<std::int64_t>(
        rng.below(static_cast<std::uint64_t>(step.count()))));
  }
  sort_by_time(out.calls);
  out.lasts += step;
  return out;
}

Statistics statistics(const Trace& trace) {
  Statistics s;
  s.calls = static_cast<std::int64_t>(trace.calls.size());
  s.seconds = to_seconds(trace.lasts);
  if (trace.calls.empty()) return s;
  std::vector<std::int64_t> prompts, outputs;
  double prompt_sum = 0, output_sum = 0;
  for (const Call& call : trace.calls) {
    prompts.push_back(call.prompt_tokens);
    outputs.push_back(call.output_tokens);
    prompt_sum += static_cast<double>(call.prompt_tokens);
    output_sum += static_cast<double>(call.output_tokens);
  }
  const auto calls = static_cast<double>(s.calls);
  s.prompt_mean = prompt_sum / calls;
  s.output_mean = output_sum / calls;
  s.prompt_p50 = quantile(prompts, 0.5), s.prompt_p99 = quantile(prompts, 0.99);
  s.output_p50 = quantile(outputs, 0.5), s.output_p99 = quantile(outputs, 0.99);
  if (s.seconds <= 0) return s;
  s.requests_per_second = calls / s.seconds;
  s.tokens_per_second = (prompt_sum + output_sum) / s.seconds;
  if (trace.sessions.empty()) s.peak_to_mean = busiest_minute(trace) / s.requests_per_second;
  return s;
}

Result<Trace> scale_to_requests(const Trace& trace, double per_second) {
  return scale_to(trace, statistics(trace).requests_per_second, per_second);
}

Result<Trace> scale_to_tokens(const Trace& trace, double per_second) {
  return scale_to(trace, statistics(trace).tokens_per_second, per_second);
}

}  // namespace signalbox::trace
