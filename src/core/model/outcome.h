// SPDX-License-Identifier: Apache-2.0
// How a request ended. Every request ends in exactly one Outcome (INV-1); it is metric label, HTTP
// status and ledger column at once.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace signalbox::model {

enum class Outcome : std::uint8_t {
  Completed,          // the engine's whole answer reached the relay
  EngineClientError,  // the engine refused the request itself (4xx but 429): passed on
  EngineThrottled,    // the engine answered 429: passed on, never retried
  EngineError,        // 5xx from the engine, after what retries were allowed: passed on
  EngineUnreachable,  // no engine could be reached or all broke before a first byte
  EngineTimeout,      // no first token in time
  Truncated,          // the answer broke after bytes had gone to the client
  ClientGone,         // the client left first
  QueueFull,          // too many or too large requests wait
  QueueTimeout,       // waited longer than allowed
  NoEndpoint,         // no endpoint of the model exists or may serve this request
  TenantLimit,        // the tenant's own cap
  Draining,           // we are shutting down
  GatewayLimit,       // our own means were too small: connections, or room for the answer
};

inline constexpr std::array kOutcomes = {
    Outcome::Completed,     Outcome::EngineClientError, Outcome::EngineThrottled,
    Outcome::EngineError,   Outcome::EngineUnreachable, Outcome::EngineTimeout,
    Outcome::Truncated,     Outcome::ClientGone,        Outcome::QueueFull,
    Outcome::QueueTimeout,  Outcome::NoEndpoint,        Outcome::TenantLimit,
    Outcome::Draining,      Outcome::GatewayLimit};

// The metric label: `completed`, `queue_full`, ...
std::string_view label(Outcome outcome);
// The HTTP status when we answer ourselves. Passed-on answers keep the engine's status; ClientGone
// is logged as 499 and Truncated as 200, since the status had gone out already.
int http_status(Outcome outcome);

}  // namespace signalbox::model
