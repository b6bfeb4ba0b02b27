// SPDX-License-Identifier: Apache-2.0
// One request at the I/O side: understands it, tells the core, carries out what the core decides,
// and relays the answer. One per client connection, used again for the next request.
// Runs on its worker's thread. Keeps INV-2 (a new attempt only before a byte went out) and INV-5
// (the client sees the end or an error).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/action.h"
#include "core/model/event.h"
#include "io/gateway/access_record.h"
#include "io/gateway/answer_relay.h"
#include "io/gateway/published.h"
#include "io/gateway/upstream.h"
#include "io/http/head_parser.h"
#include "io/json/edits.h"
#include "io/json/request_scan.h"
#include "io/net/timer.h"

namespace signalbox::gateway {

class Session;
class Worker;

class Exchange {
 public:
  Exchange(Worker& worker, Session& session);
  ~Exchange();

  // --- from the session ---

  // A request was read whole. `head` and `body` stay valid until the answer is out.
  void begin(const http::RequestHead& head, std::string_view body, bool keep_alive);
  // Refuses a request whose body has still to come, if its head is enough to know: path, method,
  // key. Answers and closes then; `begun`: when its first byte came.
  bool turn_away(const http::RequestHead& head, Instant begun);
  // How much of a request was read that will not be whole.
  enum class Read : std::uint8_t { PartOfHead, Head };
  // What was read is no request, or not a whole one: answers and closes. `head` as far as it was
  // read; `begun`: when its first byte came.
  void refuse_unread(int status, std::string_view reason, const http::RequestHead& head, Read read,
                     Instant begun);
  // The client left inside its request.
  void left_unread(const http::RequestHead& head, Read read, Instant begun);
  // The client left. Nothing can be sent any more.
  void client_gone();
  // The client has taken what was buffered, or the turn is over: go on reading from the engine.
  void resume_upstream();

  // The client left, but the engine may finish: the session must live until it has.
  bool orphan() const { return phase_ == Phase::Orphan; }
  // The core knows the request and has not concluded it.
  bool open() const { return static_cast<bool>(id_); }

  // --- from the core, through the worker ---

  void dispatch(const model::Dispatch& action);
  void abort(const model::Abort& action);
  void conclude(const model::Conclude& action);

  // --- from the engine's connection ---

  void upstream_head(const http::ResponseHead& head);
  void upstream_body(std::string_view data);
  void upstream_read_done();
  void upstream_end(bool reusable);
  void upstream_broke(Broke how, const std::string& detail);

  // Progress since the last digest, if any; for the worker's 50 ms digest.
  std::optional<model::Progress::Entry> progress();

 private:
  enum class Phase : std::uint8_t {
    Idle,       // no request
    Core,       // the core has it; no attempt runs
    Attempt,    // an attempt runs
    Judged,     // an attempt ended; the core says what becomes of it
    Orphan,     // the client left; an engine may still finish its answer (on_client_abort: drain)
  };

  // exchange_request.cc: what the request is
  void reset(bool keep_alive);
  void meet(const http::RequestHead& head);
  bool admit(const http::RequestHead& head);
  void note_client(const http::RequestHead& head);
  void note_wait();
  void note_unread(const http::RequestHead& head, Read read, Instant begun);
  bool serve_local(const http::RequestHead& head);
  bool find_api(std::string_view path);
  bool authenticate(const http::RequestHead& head);
  bool resolve_name();
  void hand_to_core(std::string_view body);
  std::string choose_request_id(const http::RequestHead& head) const;

  // exchange_attempt.cc: one try at an engine
  void open_upstream(bool fresh);
  void build_request(const EndpointAccess& endpoint);
  void append_client_fields(std::string& out, const EndpointAccess& endpoint) const;
  bool trusted_peer() const;
  void end_attempt(model::AttemptResult result);
  bool relaying() const;
  bool holding() const;
  Duration attempt_age() const;
  void await_more();
  bool client_lags() const;
  Duration first_token_limit() const;
  Duration silence_limit() const;
  bool engine_unfit() const;
  model::AttemptResult cut_off();
  model::AttemptResult end_broken();
  void deadline_passed();
  void arm(Duration limit);

  // exchange_answer.cc: what the client gets
  void keep_answer_fields(const http::ResponseHead& head);
  // `whole`: the body ended as the client should see it end.
  void flush_relay(bool whole);
  void send_stream_head();
  void send_held();
  void append_answer_fields(std::string& out) const;
  void send_local(int status, std::string_view body, Duration retry_after);
  // `param` names the key of the body that is at fault.
  void send_local_error(int status, std::string_view message, std::string_view code = {},
                        Duration retry_after = Duration(-1), std::string_view param = {});
  void end_stream_with_error(model::Outcome outcome);
  void finish(model::Outcome outcome, bool keep_alive);
  void comment_due();

  Worker& worker_;
  Session& session_;
  Phase phase_ = Phase::Idle;

  // the request
  std::shared_ptr<const Published> published_;
  const http::RequestHead* head_ = nullptr;
  std::string_view body_;
  bool keep_alive_ = true;
  bool http10_ = false;
  bool head_only_ = false;            // HEAD: no body goes out
  model::Api api_ = model::Api::ChatCompletions;
  json::RequestScan scan_;
  const NameAccess* name_ = nullptr;
  const TenantAccess* tenant_ = nullptr;
  model::RequestId id_;
  AccessRecord record_;

  // the attempt
  model::AttemptId attempt_;
  std::shared_ptr<const Published> newer_;  // holds endpoint_ when published_ does not know it
  const EndpointAccess* endpoint_ = nullptr;
  std::unique_ptr<Upstream> upstream_;
  std::string request_head_;
  std::optional<json::Edits> edits_;
  RelayPlan plan_;
  AnswerRelay relay_;
  std::optional<std::string> other_type_;  // Content-Type of what came instead of a stream
  Duration retry_after_{-1};
  Instant attempt_begun_{};
  std::optional<Instant> waits_since_;  // no attempt runs, and none has succeeded
  std::uint64_t decision_ = 0;
  bool first_token_told_ = false;
  std::int64_t signs_seen_ = 0;       // of AnswerRelay::signs()
  std::int64_t tokens_told_ = 0;
  bool retried_stale_ = false;        // a kept-alive connection had died; tried once afresh

  // the answer
  std::string answer_fields_;         // the engine's fields that are passed on
  bool head_sent_ = false;            // of our answer: bytes have gone to the client
  bool end_sent_ = false;             // and its end as well
  bool client_left_ = false;
  Instant last_sent_{};
  std::string out_;                   // head and framing being written
  net::Timer deadline_;
  net::Timer comment_;
};

}  // namespace signalbox::gateway
