// SPDX-License-Identifier: Apache-2.0
// What is remembered of a request for the access log and the metrics once it is over.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/time.h"
#include "core/model/event.h"
#include "core/model/outcome.h"

namespace signalbox::gateway {

struct AccessRecord {
  std::string request_id;          // what the client knows it by
  std::string engine_request_id;   // what engines know it by, where the client brought its own
  std::string_view tenant;         // views into Published, which the exchange keeps
  std::string client;              // its address, as far as it is believed
  std::string_view method;         // views into the request head, valid until the answer is out
  std::string_view path;
  std::string model;               // as the client wrote it; empty: not read
  std::string_view endpoint;       // label of the last attempt
  model::Api api = model::Api::ChatCompletions;
  bool stream = false;
  bool core_knew = false;          // it came as far as the core
  int attempts = 0;
  int status = 0;                  // what the client got; 499: it had left
  model::Outcome outcome = model::Outcome::Completed;
  Instant begun{};
  Instant first_byte{};            // of the answer, to the client; Instant{}: none
  Duration queued{};
  Duration first_token{-1};        // of the last attempt, since `begun`; negative: none
  model::Usage usage;
  std::int64_t tokens = 0;         // relayed events with content
  std::uint64_t bytes_in = 0;
  std::uint64_t bytes_out = 0;     // of the answer, head and framing included; a client that
                                   // leaves has not taken all of them
};

}  // namespace signalbox::gateway
