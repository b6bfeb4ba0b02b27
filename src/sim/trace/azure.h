// SPDX-License-Identifier: Apache-2.0
// Reads the Azure LLM inference trace, code or conversation (Patel et al., Splitwise, ISCA 2024),
// in the form `t_ms,input_tokens,output_tokens`. Pure.
#pragma once

#include <string_view>

#include "base/result.h"
#include "sim/trace/trace.h"

namespace signalbox::trace {

// Milliseconds from the first request. Nothing is known of prefixes: every prompt is new.
Result<Trace> read_azure(std::string_view text);

}  // namespace signalbox::trace
