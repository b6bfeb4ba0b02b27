// SPDX-License-Identifier: Apache-2.0
// What the core wants done. Each action names its request and attempt; a carrier that no longer
// knows them (the client left in the meantime) drops it: the action is stale.
#pragma once

#include <cstdint>
#include <variant>

#include "base/time.h"
#include "core/model/ids.h"
#include "core/model/outcome.h"

namespace signalbox::model {

// Send the request to an endpoint.
struct Dispatch {
  RequestId request;
  AttemptId attempt;
  EndpointId endpoint;
  std::uint64_t decision = 0;    // number of the routing decision, for the response header
  Duration queued{};             // how long the request waited here
};

// Close the connection of an attempt; its AttemptEnded(Aborted) may be skipped.
struct Abort {
  RequestId request;
  AttemptId attempt;
};

// The request is over. The core has forgotten it; the carrier delivers what `answer` says.
struct Conclude {
  enum class Answer : std::uint8_t {
    PassOn,  // the engine's answer as it is: held whole, or streamed already
    Local,   // our own answer for `outcome`; as an error event when a stream has begun
    None,    // nobody is there to receive one
  };
  RequestId request;
  AttemptId attempt;             // the attempt whose answer is passed on; 0: none
  Outcome outcome = Outcome::Completed;
  Answer answer = Answer::Local;
  Duration retry_after{-1};      // for Retry-After; negative: none
};

using Action = std::variant<Dispatch, Abort, Conclude>;

// An action with the I/O thread that owns the request.
struct OwnedAction {
  std::uint16_t owner = 0;
  Action action;
};

}  // namespace signalbox::model
