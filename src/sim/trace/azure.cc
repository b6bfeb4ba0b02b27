// SPDX-License-Identifier: Apache-2.0
// Reads rows of times and lengths.
#include "sim/trace/azure.h"

#include <algorithm>

#include "sim/trace/table.h"

namespace signalbox::trace {

Result<Trace> read_azure(std::string_view text) {
  enum Column { Time, Input, Output };
  Table table(text, "Azure trace", {"t_ms", "input_tokens", "output_tokens"});
  Trace trace;
  while (table.next()) {
    const auto number = static_cast<std::int32_t>(trace.calls.size());
    Call call;
    call.at = from_seconds(table.real(Time, {0, 1e12}) / 1e3);
    call.prompt_tokens = table.integer(Input, {1, kTokensMax});
    call.output_tokens = std::max<std::int64_t>(1, table.integer(Output, {0, kTokensMax}));
    call.last = number;
    call.answer = mixed(4, trace.calls.size());
    trace.pieces.push_back({-1, mixed(3, trace.calls.size()), call.prompt_tokens, false});
    trace.calls.push_back(call);
  }
  if (table.error()) return *table.error();
  if (trace.calls.empty()) table.fail("there is no request; write one a line under the header.");
  if (table.error()) return *table.error();
  sort_by_time(trace.calls);
  trace.lasts = trace.calls.back().at;
  return trace;
}

}  // namespace signalbox::trace
