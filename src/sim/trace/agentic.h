// SPDX-License-Identifier: Apache-2.0
// Reads sessions of coding agents (callanjfox/kv-cache-tester, reduced to the prefix trees of their
// prompts): one table of calls, one of sessions. Pure.
#pragma once

#include <string_view>

#include "base/result.h"
#include "sim/trace/trace.h"

namespace signalbox::trace {

// A trace of sessions without recorded starts. The columns of `calls` that are read: `session`
// (rows of one stand together), `subagent` (empty: the parent agent), `call` (0, 1, ... within the
// session), `t_s`, `think_s`, `api_s` (seconds; the last two may be empty), `input_tokens`,
// `output_tokens`, `prefix_of_call` (-1: none), `shared_blocks` (of 64 tokens). Of `sessions`:
// `session`, `tool_tokens`, `system_tokens`, which begin the session's first prompt and are common.
//
// A call waits for the one before it of the same agent, and then for its recorded think time; where
// sub-agents ran to their end meanwhile, for the last of those. A sub-agent's first call waits for
// the parent's call that it follows. A prompt repeats the recorded blocks of `prefix_of_call`;
// where that is all of them and the answer fits, the answer follows.
Result<Trace> read_agentic(std::string_view calls, std::string_view sessions);

}  // namespace signalbox::trace
