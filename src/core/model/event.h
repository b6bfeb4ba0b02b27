// SPDX-License-Identifier: Apache-2.0
// What happens to requests, attempts and endpoints: the inputs of the core, the same from sockets
// and from the simulator. Which may follow which is core/model/grammar.h. There is no event per
// token: whoever relays counts, and hands in the first token, the end, and digests of progress.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "base/time.h"
#include "core/model/engine_state.h"
#include "core/model/ids.h"
#include "core/model/prompt.h"

namespace signalbox::model {

enum class Api : std::uint8_t {
  ChatCompletions, Completions, Embeddings, Messages, CountTokens, Responses
};

// A request was read whole, is valid, and its public model name is known.
struct RequestArrived {
  RequestId request;
  std::uint16_t owner = 0;        // I/O thread that carries out this request's actions
  TenantId tenant;                // 0: no tenants are declared
  RouteId route;
  Api api = Api::ChatCompletions;
  bool stream = false;
  std::uint64_t lora = 0;         // hash of the adapter's name; 0: none
  std::int64_t body_bytes = 0;    // held in memory while it waits
  std::int64_t output_max = 0;    // max_tokens of the client; 0: not given
  int choices = 1;                // n
  Prompt prompt;
};

// The client closed its connection; nothing more can be delivered.
struct ClientGone {
  RequestId request;
};

// The first event with content came from the engine (not the response head: llama.cpp sends that
// before prefill).
struct FirstToken {
  RequestId request;
  AttemptId attempt;
};

enum class AttemptResult : std::uint8_t {
  Ok,             // a whole answer, with a finish reason for every choice
  ClientError,    // 4xx but 429, as status or as code of an error in the answer's place
  Throttled,      // 429
  ServerError,    // 5xx, likewise; also an error in the answer's place that names no code
  ConnectError,   // refused, unreachable, or no connection in time
  Reset,          // closed or broken protocol before a whole response head
  Truncated,      // ended inside an answer, or without a finish reason
  StreamError,    // an error event inside a stream that the client has begun to read
  FirstTokenTimeout,
  IdleTimeout,    // silence between events
  Aborted,        // closed by our own Abort
  Shortage,       // we had no descriptor or port for it
  Overrun,        // longer than we may hold for a client that does not stream
  Unfit,          // it refuses our key, does not know its model, or sends us elsewhere
};

// Token counts as the engine reported them; -1: not told.
struct Usage {
  std::int64_t prompt_tokens = -1;
  std::int64_t cached_tokens = -1;
  std::int64_t completion_tokens = -1;
};

// Timings inside the engine's own answer; negative: not told.
struct EngineTimings {
  Duration queue{-1};
  Duration prefill{-1};
  Duration decode{-1};
  std::int64_t prefill_tokens = -1;  // computed, without cached ones
};

// The last event of an attempt. The relay may hold the engine's answer until the core has said what
// becomes of it.
struct AttemptEnded {
  RequestId request;
  AttemptId attempt;
  AttemptResult result = AttemptResult::Ok;
  int status = 0;             // HTTP status of the engine; 0: none came
  bool delivered = false;     // bytes of this answer have gone to the client already
  bool client_left = false;   // before it: the engine finished for nobody, and the request is over
  std::int64_t tokens = 0;    // content events or tokens counted by the relay
  Duration retry_after{-1};   // the engine's own word; negative: none
  Usage usage;
  EngineTimings timings;
};

// Tokens relayed so far, for all attempts of one I/O thread that moved since the last digest.
struct Progress {
  struct Entry {
    RequestId request;
    AttemptId attempt;
    std::int64_t tokens = 0;  // since the attempt began
  };
  std::vector<Entry> entries;
};

// One look at an engine's metrics.
struct EndpointObserved {
  EndpointId endpoint;
  EngineState state;
};

// A look at an engine failed.
struct EndpointUnreachable {
  EndpointId endpoint;
  bool no_connection = false;  // it did not even accept one: nobody is there
};

// We stop now: nothing more is admitted, and what is in flight is aborted and concluded. Until then
// a drain is the business of whoever accepts connections.
struct DrainOver {};

// Time passed and next_wake() was due.
struct Tick {};

using Event = std::variant<RequestArrived, ClientGone, FirstToken, AttemptEnded, Progress,
                           EndpointObserved, EndpointUnreachable, DrainOver, Tick>;

}  // namespace signalbox::model
