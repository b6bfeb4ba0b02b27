// SPDX-License-Identifier: Apache-2.0
// One generation request while it is served, and how its answer is written, by API and dialect.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "emulator/fault.h"
#include "emulator/request.h"
#include "emulator/text.h"
#include "sim/engine/engine.h"

namespace signalbox::emulator {

class Connection;

// The bytes of a chunked stream, with the faults that count its events.
class EventStream {
 public:
  enum class State : std::uint8_t { Flowing, Stalled, Cut, Failed };

  // Where the bytes go; null once the client is gone.
  void attach(std::string* out) { out_ = out; }
  void arm(const Fault& fault) { fault_ = fault; }
  // One HTTP chunk of `count` events; nothing once a fault has struck, but a stall keeps it.
  void chunk(std::initializer_list<std::string_view> pieces, int count);
  // The end of the body.
  void finish();
  // Ends a stall: what was kept goes out.
  void resume();

  std::string* sink() const { return out_; }
  State state() const { return state_; }
  std::int64_t events() const { return events_; }
  std::int64_t stall_ms() const { return fault_.stall_ms; }

 private:
  bool struck(int count);
  static void frame(std::string& out, std::initializer_list<std::string_view> pieces);

  std::string* out_ = nullptr;
  std::string held_;
  Fault fault_;
  std::int64_t events_ = 0;
  State state_ = State::Flowing;
};

struct Choice {
  truth::SequenceId sequence = 0;
  Answer answer;
  std::string echo;               // goes before the text of a plain answer
  std::vector<std::uint32_t> prompt_ids;  // vLLM, return_token_ids
  std::int64_t prompt_tokens = 0;
  std::int64_t produced = 0;
  std::int64_t cached = 0;
  int rank = 0;                   // that computes it
  bool done = false;
  // Times of the wall; kNever until they come.
  Instant admitted = kNever;
  Instant first = kNever;
  Instant last = kNever;           // the latest token
};

struct Exchange {
  Dialect dialect = Dialect::Vllm;
  GenerateRequest request;        // without its prompts
  std::string id;
  std::string client_request_id;  // X-Request-Id as it came
  std::string model;              // on the wire, as it stands in JSON
  std::int64_t created = 0;       // seconds since 1970
  bool details = true;            // usage tells cached tokens
  bool metrics = false;           // vLLM: the answer carries timings
  std::int64_t context_tokens = 0;
  std::vector<Choice> choices;
  std::size_t open_choices = 0;
  int rank = truth::Engine::kAnyRank;  // wanted

  Connection* connection = nullptr;  // null once the client is gone
  EventStream events;
  Fault fault;
  bool head_sent = false;

  Instant arrived{};
  bool opened = false;    // stream_open() has run
  bool complete = false;  // every choice is done; only a stall keeps the end back
  std::uint32_t slot = 0; // the engine's

  // The unchanging sides of a token's event, per choice.
  std::vector<std::string> before;
  std::string after;
  std::int64_t sequence_number = 0;  // Responses API

  std::int64_t prompt_tokens() const;   // each prompt once
  std::int64_t cached_tokens() const;
  std::int64_t produced_tokens() const;
};

// At the first token of the first choice, at each token, and behind the last: into ex.events.
void stream_open(Exchange& ex);
void stream_token(Exchange& ex, std::size_t index);
void stream_close(Exchange& ex);
// The engine's own way to fail in the middle of a stream.
void stream_error(Exchange& ex);
// The whole answer.
std::string plain_answer(const Exchange& ex);

// A refusal as this dialect words it on this API.
std::string refusal_body(Dialect dialect, Api api, const Refusal& refusal,
                         std::int64_t context_tokens);

// answer_vllm.cc, answer_llamacpp.cc: the two OpenAI shapes. answer_messages.cc,
// answer_responses.cc: APIs that both dialects share.
namespace vllm {
void open(Exchange& ex);
void token(Exchange& ex, std::size_t index);
void close(Exchange& ex);
std::string plain(const Exchange& ex);
}  // namespace vllm
namespace llamacpp {
void open(Exchange& ex);
void token(Exchange& ex, std::size_t index);
void close(Exchange& ex);
std::string plain(const Exchange& ex);
std::string timings(const Exchange& ex, const Choice& choice);
}  // namespace llamacpp
namespace messages {
void open(Exchange& ex);
void token(Exchange& ex, std::size_t index);
void close(Exchange& ex);
std::string plain(const Exchange& ex);
}  // namespace messages
namespace responses {
void open(Exchange& ex);
void token(Exchange& ex, std::size_t index);
void close(Exchange& ex);
std::string plain(const Exchange& ex);
}  // namespace responses

// Helpers of the four.
std::string json_string(std::string_view text);  // with its quotes
std::string json_number(double value);
std::string_view finish_name(const Choice& choice);  // stop or length
double milliseconds(Duration d);
// The text of the token that was just made, as it stands in a JSON string.
std::string_view piece_json(const Choice& choice, std::string& scratch);
std::string ids_json(const std::vector<std::uint32_t>& ids);

}  // namespace signalbox::emulator
