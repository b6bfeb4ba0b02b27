// SPDX-License-Identifier: Apache-2.0
// W3C trace context: the traceparent header, read strictly and written as version 00. `tracestate`
// is passed on as it came when traceparent is valid, and dropped otherwise. Pure; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/rng.h"

namespace signalbox::telemetry {

struct TraceContext {
  std::array<std::uint8_t, 16> trace_id{};   // not all zero
  std::array<std::uint8_t, 8> parent_id{};   // the caller's span; not all zero
  bool sampled = false;
  bool random = false;                       // trace_id is random in its last seven bytes
};

inline constexpr std::size_t kTraceparentBytes = 55;

// None: the header is invalid and a new trace begins. Upper-case hex, zero ids, version ff and
// wrong lengths are invalid; higher versions may go on after a further `-`.
std::optional<TraceContext> parse_traceparent(std::string_view header);

// Appends the 55 bytes of version 00.
void append_traceparent(std::string& out, const TraceContext& context);
// Appends 32 hex digits.
void append_trace_id(std::string& out, const TraceContext& context);

// The same trace with a new span of ours as parent, for one outgoing hop.
TraceContext child_of(const TraceContext& context, Rng& rng);
// A new trace, not sampled.
TraceContext new_trace(Rng& rng);

}  // namespace signalbox::telemetry
