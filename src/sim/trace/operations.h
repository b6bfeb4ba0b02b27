// SPDX-License-Identifier: Apache-2.0
// Traces of traces, and what is in them. Pure; a trace that keeps its promises (trace.h) gives one
// that does.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "base/rng.h"
#include "sim/trace/trace.h"

namespace signalbox::trace {

// Whether it is known when every session starts; true without sessions.
bool has_starts(const Trace& trace);

// What comes in [start, start + length), with times from `start` on. Of sessions, those that were
// recorded to start then; all whose start nobody knows.
Trace slice(const Trace& trace, Duration start, Duration length);
// Sessions [first, first + count), as far as there are so many.
Trace take_sessions(const Trace& trace, std::size_t first, std::size_t count);

// `factor` (> 0) times as many arrivals a second: the same calls in less time. Within sessions
// nothing changes; clients think as long as ever.
Trace scale_rate(const Trace& trace, double factor);

// The trace again and again until `length` is full. Each repetition is about other things: only
// what is common to its calls stays the same. Of a trace of sessions without starts: `length`
// means nothing, so it stays as it is.
Trace splice(const Trace& trace, Duration length);

// Moves each call of an open-loop trace by a draw from [0, step): undoes a record in coarse steps.
Trace spread(const Trace& trace, Duration step, Rng& rng);

struct Statistics {
  std::int64_t calls = 0;
  double seconds = 0;
  double requests_per_second = 0;
  double tokens_per_second = 0;      // of prompts and answers
  double prompt_mean = 0, prompt_p50 = 0, prompt_p99 = 0;
  double output_mean = 0, output_p50 = 0, output_p99 = 0;
  double peak_to_mean = 0;           // busiest minute over the mean; open loop
};
Statistics statistics(const Trace& trace);

// Scaled so that it comes at this mean rate (> 0). An error: a trace that lasts no time, or of
// sessions whose starts nobody knows.
Result<Trace> scale_to_requests(const Trace& trace, double per_second);
Result<Trace> scale_to_tokens(const Trace& trace, double per_second);

}  // namespace signalbox::trace
