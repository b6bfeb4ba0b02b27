// SPDX-License-Identifier: Apache-2.0
// What a client's library does with an answer that is none. Pure.
#pragma once

#include <optional>

#include "base/describe.h"
#include "base/rng.h"
#include "base/time.h"
#include "core/model/outcome.h"

namespace signalbox::sim {

// The client's library, by default as the OpenAI SDKs are (openai-python `_base_client.py`).
struct Sdk {
  Duration timeout = std::chrono::seconds(600);       // to the first byte; 0: none
  int retries_max = 2;                                // after 408, 409, 429, 5xx, no connection
  Duration backoff = std::chrono::milliseconds(500);  // before the first; doubles; less up to 25 %
  Duration backoff_max = std::chrono::seconds(8);
  Duration retry_after_max = std::chrono::seconds(120);  // longer ones end the trying
};

template <typename Visitor>
void describe(Visitor& v, Sdk& c) {
  v(c.timeout, "timeout", "Longest wait for the first byte of an answer; 0: for ever.",
    Range{0, 1e6});
  v(c.retries_max, "retries_max", "Times that a failed request is sent again.", Range{0, 100});
  v(c.backoff, "backoff", "Wait before the first retry, less up to a quarter; then it doubles.",
    Range{0, 1e4});
  v(c.backoff_max, "backoff_max", "Longest such wait.", Range{0, 1e5});
  v(c.retry_after_max, "retry_after_max", "A longer Retry-After is not waited for.",
    Range{0, 1e6});
}

// Whether the answer to a request that ended so has a status that is tried again: 408, 409, 429 or
// 5xx. A stream that breaks off has none of them.
bool is_retried(model::Outcome outcome);

// The wait before it is sent again; nothing: it is not. `retries`: how often it was already;
// `retry_after`: what the answer says, negative or 0 if nothing. As openai-python has it: that time
// when it says one, and gives up when it is too long; else backoff·2^retries, less up to 25 %.
std::optional<Duration> retry_delay(const Sdk& sdk, int retries, Duration retry_after, Rng& rng);

}  // namespace signalbox::sim
