// SPDX-License-Identifier: Apache-2.0
// The one table from outcomes to labels and HTTP statuses.
#include "core/model/outcome.h"

#include "base/check.h"

namespace signalbox::model {

std::string_view label(Outcome outcome) {
  switch (outcome) {
    case Outcome::Completed: return "completed";
    case Outcome::EngineClientError: return "engine_client_error";
    case Outcome::EngineThrottled: return "engine_throttled";
    case Outcome::EngineError: return "engine_error";
    case Outcome::EngineUnreachable: return "engine_unreachable";
    case Outcome::EngineTimeout: return "engine_timeout";
    case Outcome::Truncated: return "truncated";
    case Outcome::ClientGone: return "client_gone";
    case Outcome::QueueFull: return "queue_full";
    case Outcome::QueueTimeout: return "queue_timeout";
    case Outcome::NoEndpoint: return "no_endpoint";
    case Outcome::TenantLimit: return "tenant_limit";
    case Outcome::Draining: return "draining";
    case Outcome::GatewayLimit: return "gateway_limit";
  }
  CHECK(false);
}

int http_status(Outcome outcome) {
  switch (outcome) {
    case Outcome::Completed: return 200;
    case Outcome::EngineClientError: return 400;
    case Outcome::EngineThrottled: return 429;
    case Outcome::EngineError: return 502;
    case Outcome::EngineUnreachable: return 502;
    case Outcome::EngineTimeout: return 504;
    case Outcome::Truncated: return 200;
    case Outcome::ClientGone: return 499;
    case Outcome::QueueFull: return 503;
    case Outcome::QueueTimeout: return 503;
    case Outcome::NoEndpoint: return 503;
    case Outcome::TenantLimit: return 429;
    case Outcome::Draining: return 503;
    case Outcome::GatewayLimit: return 503;
  }
  CHECK(false);
}

}  // namespace signalbox::model
