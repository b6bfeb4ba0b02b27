// SPDX-License-Identifier: Apache-2.0
// Reads the traces of Mooncake (kvcache-ai/Mooncake, FAST25-release/traces). Pure.
#pragma once

#include <string_view>

#include "base/result.h"
#include "sim/trace/trace.h"

namespace signalbox::trace {

// One JSON object a line: `timestamp` (ms from the start), `input_length`, `output_length`
// (tokens), `hash_ids` (one per 512 tokens of prompt: equal ids, equal beginnings). Other keys are
// passed over. Blocks that at least half of the calls begin with are common.
Result<Trace> read_mooncake(std::string_view text);

}  // namespace signalbox::trace
