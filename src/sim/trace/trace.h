// SPDX-License-Identifier: Apache-2.0
// Recorded or drawn traffic: calls over one tree of prompts. A value; pure.
//
// An open-loop trace has no sessions: each call comes at its time, whatever happens to others. In a
// trace of sessions a call waits for the answer to another one (`after`) and for what the client
// does in between (`think`).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "sim/trace/span.h"

namespace signalbox::trace {

// No prompt and no answer is longer; a reader refuses what is.
inline constexpr std::int64_t kTokensMax = 10'000'000;

// A prompt's end; with what stands before it, the whole prompt. Two pieces of one name, one of them
// shorter, hold the same beginning.
struct Piece {
  std::int32_t before = -1;   // the piece in front, of a lower index; -1: the prompt begins here
  std::uint64_t content = 0;
  std::int64_t tokens = 0;    // >= 1
  bool common = false;        // the client program's own preamble: the same in every copy
};

struct Call {
  Duration at{};                  // from the trace's start; in sessions: from its session's start
  std::int32_t last = -1;         // the piece that its prompt ends with
  std::int64_t prompt_tokens = 0; // of all its pieces
  std::int64_t output_tokens = 1; // >= 1
  std::uint64_t answer = 0;       // name of the answer's content
  std::uint32_t copy = 0;         // which repetition; content that is not common differs by it
  std::int32_t after = -1;        // the call whose answer it waits for, of a lower index; -1: none
  Duration think{};               // from that answer's end to this call
};

// Calls [first, first + calls), in the order of their recorded times.
struct Session {
  std::int32_t first = 0;
  std::int32_t calls = 0;
  Duration start{-1};             // negative: not recorded; whoever plays it chooses
};

struct Trace {
  std::vector<Piece> pieces;
  std::vector<Call> calls;        // open loop: ordered by `at`
  std::vector<Session> sessions;  // cover all calls in order; none: open loop
  Duration lasts{};               // of the record; no call and no recorded start is later
};

// The prompt in order. `copy` is mixed into what is not common, beside the call's own.
std::vector<Span> prompt_of(const Trace& trace, const Call& call, std::uint64_t copy = 0);
// The name under which later prompts hold this call's answer.
std::uint64_t answer_of(const Call& call, std::uint64_t copy = 0);

// The conversation that an open-loop call belongs to: the name of its first piece that is not
// common; of its answer where all are.
std::uint64_t origin_of(const Trace& trace, const Call& call);

// By `at`; calls of one time stay as they are.
void sort_by_time(std::vector<Call>& calls);

// What breaks the promises above; nothing when all are kept.
std::optional<std::string> fault_of(const Trace& trace);

}  // namespace signalbox::trace
