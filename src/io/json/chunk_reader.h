// SPDX-License-Identifier: Apache-2.0
// ChunkReader: reads the data payloads of one answer stream, one at a time, in any API's dialect.
// Nothing is allocated; what is not needed is only checked for syntax.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/model/event.h"
#include "io/json/answer_walk.h"
#include "io/json/span.h"

namespace signalbox::json {

// What one payload says. Spans are offsets into it.
struct Chunk {
  bool malformed = false;   // not a JSON object: nothing else is set
  bool done = false;        // the API's own end: [DONE], message_stop, response.completed
  bool error = false;       // the engine reports a failure; its value is `error_value`
  bool usage_only = false;  // usage beside an empty list of choices
  bool has_usage = false;
  int contents = 0;         // choices with text, reasoning or a tool call in this chunk
  int finishes = 0;         // choices that end in this chunk
  Span model;               // value of `model`, with quotes
  Span error_value;         // empty for errors that are the whole payload
  Span null_usage;          // to cut when nobody asked for usage: `"usage":null` and one comma
};

class ChunkReader {
 public:
  explicit ChunkReader(model::Api api) : api_(api) {}

  Chunk read(std::string_view payload);

  // Over all payloads so far.
  int seen() const { return seen_.count(); }          // distinct choices, where the API has them
  int finished() const { return finished_.count(); }  // those that have ended; an answer's end
  bool first_finished(int n) const { return finished_.has_first(n); }
  model::Usage usage() const { return to_usage(api_, usage_, timings_); }
  model::EngineTimings timings() const { return to_timings(timings_); }

 private:
  struct Walk;
  void read_openai(Walk& walk);
  void read_messages(Walk& walk);
  void read_responses(Walk& walk);

  model::Api api_;
  UsageParts usage_;
  TimingParts timings_;
  ChoiceSet seen_;
  ChoiceSet finished_;
};

}  // namespace signalbox::json
