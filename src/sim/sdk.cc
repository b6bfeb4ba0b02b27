// SPDX-License-Identifier: Apache-2.0
// Retries as the OpenAI SDKs do: openai-python `_should_retry`, `_calculate_retry_timeout`.
#include "sim/sdk.h"

#include <algorithm>
#include <cmath>

namespace signalbox::sim {

bool is_retried(model::Outcome outcome) {
  const int status = model::http_status(outcome);
  return status == 408 || status == 409 || status == 429 || status >= 500;
}

std::optional<Duration> retry_delay(const Sdk& sdk, int retries, Duration retry_after, Rng& rng) {
  if (retries >= sdk.retries_max || retry_after > sdk.retry_after_max) return std::nullopt;
  if (retry_after > Duration::zero()) return retry_after;
  const double doubled = to_seconds(sdk.backoff) * std::ldexp(1.0, std::min(retries, 60));
  const double wait = std::min(doubled, to_seconds(sdk.backoff_max));
  return from_seconds(wait * (1 - 0.25 * rng.uniform()));
}

}  // namespace signalbox::sim
