// SPDX-License-Identifier: Apache-2.0
// Names and help of the gateway's metrics.
#include "io/gateway/metrics.h"

namespace signalbox::gateway {

Metrics::Metrics(telemetry::Registry& registry)
    : requests(registry.counters({"signalbox_requests_total",
                                  "Requests that ended, by how they ended.",
                                  {"model", "api", "outcome"}})),
      refused(registry.counters({"signalbox_requests_refused_total",
                                 "Requests that ended before placement with an error, by status; "
                                 "499: the client left.",
                                 {"status"}})),
      local(registry.counters({"signalbox_requests_local_total",
                               "Requests that the gateway served itself, such as /v1/models.",
                               {"status"}})),
      ttft(registry.histograms({"signalbox_time_to_first_token_seconds",
                                "From the arrival of a request to its first token.",
                                {"model"}},
                               telemetry::latency_bounds())),
      duration(registry.histograms({"signalbox_request_duration_seconds",
                                    "From the arrival of a request to its end.",
                                    {"model"}},
                                   telemetry::latency_bounds())),
      queue(registry.histograms({"signalbox_queue_wait_seconds",
                                 "Time that requests waited in the gateway.",
                                 {"model"}},
                                telemetry::latency_bounds())),
      tokens(registry.counters(
          {"signalbox_tokens_total", "Tokens as engines report them.", {"model", "kind"}})),
      attempts(registry.counters({"signalbox_attempt_failures_total",
                                  "Connections to engines that broke.",
                                  {"endpoint"}})),
      bytes_in(registry.counter("signalbox_received_bytes_total", "Request bytes from clients.")),
      bytes_out(registry.counter("signalbox_sent_bytes_total",
                                 "Bytes that connections of clients took.")),
      stale_actions(registry.counter("signalbox_stale_actions_total",
                                     "Actions of the core for requests that were gone.")),
      connections(registry.gauge("signalbox_client_connections", "Open client connections.")),
      connections_refused(registry.counter("signalbox_client_connections_refused_total",
                                           "Connections closed because of the limit.")),
      body_bytes(registry.gauge("signalbox_request_body_bytes",
                                "Bytes of request bodies that are here, but for small ones.")) {}

}  // namespace signalbox::gateway
