// SPDX-License-Identifier: Apache-2.0
// One line of JSON per request, for people and log pipelines. Names and figures only: no prompts,
// no answers, no keys.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/time.h"
#include "core/model/event.h"
#include "io/telemetry/json_text.h"

namespace signalbox::telemetry {

// Empty texts and negative numbers and durations are not told, and not in the line.
struct AccessRecord {
  std::int64_t unix_nanos = 0;  // when the request ended
  std::string_view request_id;  // what the client knows it by
  std::string_view engine_request_id;  // what engines know it by; empty: the same
  std::string_view trace_id;    // 32 hex digits
  std::string_view client;      // its address; behind a trusted peer, as that one says
  std::string_view tenant;
  std::string_view method;
  std::string_view path;        // without the query
  std::string_view model;       // as the client named it
  std::string_view route;
  std::string_view pool;
  std::string_view endpoint;
  int status = -1;              // sent to the client
  std::string_view outcome;     // that of the core; `refused`: it never got there
  bool stream = false;
  int attempts = -1;
  Duration queue{-1};           // waited here
  Duration ttft{-1};            // from arrival to the first token
  Duration total{-1};
  model::Usage usage;
  std::int64_t bytes_in = -1;
  std::int64_t bytes_out = -1;  // of the whole answer, with its head; taken by the client or not
};

// Costs some 300 ns a line. One per thread.
class AccessFormat {
 public:
  // Appends the line with its line feed.
  void append(std::string& out, const AccessRecord& record);

 private:
  UtcClockText clock_;
};

}  // namespace signalbox::telemetry
