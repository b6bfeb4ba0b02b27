// SPDX-License-Identifier: Apache-2.0
// What a client's library does with an answer that is none. Pure.
#pragma once

#include <optional>

#include "base/rng.h"
#include "base/time.h"
#include "core/model/outcome.h"
#include "sim/load_settings.h"

namespace signalbox::sim {

// Whether a request that ended so is sent again, if tries are left: 408, 409, 429, 5xx, and no
// connection. Never once a stream has begun, which Truncated says.
bool is_retried(model::Outcome outcome);

// The wait before it is sent again; nothing: it is not. `retries`: how often it was already;
// `retry_after`: what the answer says, negative or 0 if nothing. As openai-python has it: that time
// when it says one, and gives up when it is too long; else backoff·2^retries, less up to 25 %.
std::optional<Duration> retry_delay(const Sdk& sdk, int retries, Duration retry_after, Rng& rng);

}  // namespace signalbox::sim
