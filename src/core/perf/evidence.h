// SPDX-License-Identifier: Apache-2.0
// What calibration learns from: seconds that an engine took, with the work it did in them. Also how
// engine answers and two looks at an engine's histograms become evidence. Pure.
#pragma once

#include <cstdint>
#include <optional>

#include "core/model/engine_state.h"
#include "core/model/event.h"
#include "core/model/ids.h"

namespace signalbox::perf {

// Who measured, best first. While a better witness of a kind of work has spoken lately, worse ones
// are not heard, so that no request counts twice.
enum class Witness : std::uint8_t {
  Answer,     // timings inside the engine's own answer to one request
  Histogram,  // differences of sum and count of the engine's histograms
  OwnClock,   // our clock: first token of a request sent to an idle endpoint, or relayed tokens
};

// Prefill of one request, or of several summed. Seconds without queueing.
struct PrefillEvidence {
  model::EndpointId endpoint;
  Witness witness = Witness::Answer;
  double requests = 1;
  double seconds = 0;      // sum over the requests
  double fresh = 0;        // prompt tokens computed, not cached; sum
  double attention = 0;    // sum of fresh·(cached + fresh/2)
  double decoding = 0;     // mean number of sequences that decoded beside; 0: the engine was idle
  double decoding_kv = 0;  // their KV tokens
};

// Decoding of one request, or of several that ran together.
struct DecodeEvidence {
  model::EndpointId endpoint;
  Witness witness = Witness::Answer;
  double steps = 0;             // tokens after the first
  double seconds = 0;           // from the first token to the last
  double batch = 1;             // mean number of sequences that decoded, this one included
  double kv = 0;                // mean sum of their KV tokens
  double others_fresh = 0;      // prompt tokens computed for others meanwhile
  double others_attention = 0;  // sum of fresh·(cached + fresh/2) over them
};

// What our own books say about the engine while one request ran.
struct Company {
  double decoding_before = 0;   // sequences that decoded beside its prefill, mean
  double decoding_kv_before = 0;
  double batch = 1;             // sequences that decoded with it, itself included, mean
  double kv = 0;                // their KV tokens, mean
  double others_fresh = 0;      // see DecodeEvidence
  double others_attention = 0;
};

// Nothing when the answer does not tell the seconds or the tokens. `generated` is the number of
// output tokens.
std::optional<PrefillEvidence> prefill_from(model::EndpointId endpoint,
                                            const model::EngineTimings& timings,
                                            const model::Usage& usage, const Company& company);
std::optional<DecodeEvidence> decode_from(model::EndpointId endpoint,
                                          const model::EngineTimings& timings,
                                          std::int64_t generated, const Company& company);

// First token of a request sent to an endpoint that was idle on our count and on its gauge.
// `seconds` is measured less the time to reach the endpoint.
PrefillEvidence prefill_when_idle(model::EndpointId endpoint, double seconds, double fresh,
                                  double cached);

// Turns successive looks at one engine into evidence. A restart, a counter that runs backwards or
// one that is missing starts anew.
class HistogramWatch {
 public:
  struct Delta {
    PrefillEvidence prefill;
    double queue_seconds = 0;  // mean per request; 0 when the engine does not say
  };
  // The attention of the requests is not told, so it is reckoned from their mean lengths as if
  // these were exponentially distributed. `decoding` and `kv` as in PrefillEvidence.
  std::optional<Delta> observe(model::EndpointId endpoint, const model::EngineState& state,
                               double decoding, double kv);

 private:
  model::EngineState last_;
  bool has_last_ = false;
};

}  // namespace signalbox::perf
