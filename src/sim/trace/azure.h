// SPDX-License-Identifier: Apache-2.0
// Reads the Azure LLM inference traces, code or conversation (Patel et al., Splitwise, ISCA 2024).
// Pure.
#pragma once

#include <string_view>

#include "base/result.h"
#include "sim/trace/trace.h"

namespace signalbox::trace {

// `t_ms,input_tokens,output_tokens`, milliseconds from the first request; or as it was published,
// `TIMESTAMP,ContextTokens,GeneratedTokens`, times such as `2023-11-16 18:17:03.9799600`. Nothing
// is known of prefixes: every prompt is new.
Result<Trace> read_azure(std::string_view text);

}  // namespace signalbox::trace
