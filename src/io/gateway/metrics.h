// SPDX-License-Identifier: Apache-2.0
// The gateway's metrics. Label values come from the configuration, never from clients, so that
// invented model names make no series. Updated from any thread.
#pragma once

#include "io/telemetry/registry.h"

namespace signalbox::gateway {

struct Metrics {
  explicit Metrics(telemetry::Registry& registry);

  telemetry::Counters& requests;          // model, api, outcome
  telemetry::Counters& refused;           // status, from 400: the core never knew of them
  telemetry::Counters& local;             // status, below 400: nor of these
  telemetry::Histograms& ttft;            // model
  telemetry::Histograms& duration;        // model
  telemetry::Histograms& queue;           // model
  telemetry::Counters& tokens;            // model, kind: prompt, cached, completion
  telemetry::Counters& attempts;          // endpoint, result: failures only
  telemetry::Counter& bytes_in;
  telemetry::Counter& bytes_out;
  telemetry::Counter& stale_actions;
  telemetry::Gauge& connections;
  telemetry::Counter& connections_refused;
  telemetry::Gauge& body_bytes;
};

}  // namespace signalbox::gateway
