// SPDX-License-Identifier: Apache-2.0
// One I/O thread: its loop, its listener, its client sessions and engine connections, and its batch
// of events for the core. Everything here runs on that thread but publish(), drain() and stop().
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/model/action.h"
#include "core/model/event.h"
#include "io/gateway/access_record.h"
#include "io/gateway/published.h"
#include "io/gateway/session.h"
#include "io/gateway/shared.h"
#include "io/gateway/upstream_pool.h"
#include "io/net/acceptor.h"
#include "io/net/loop.h"
#include "io/telemetry/access_log.h"

namespace signalbox::gateway {

class Worker {
 public:
  // Listens on `address` with its own queue (SO_REUSEPORT).
  static Result<std::unique_ptr<Worker>> create(Shared& shared, const net::Address& address,
                                                std::shared_ptr<net::TlsContext> tls);
  ~Worker();

  // Runs the loop until stop().
  void run();

  // From any thread.
  void publish(std::shared_ptr<const Published> published);
  void set_tls(std::shared_ptr<net::TlsContext> tls);
  // Accepts no more; idle connections close, others close after their request.
  void drain();
  void stop();

  net::Address listening() const;

  // --- for sessions and exchanges ---

  net::Loop& loop() { return *loop_; }
  const Published& published() const { return *published_; }
  std::shared_ptr<const Published> published_ptr() const { return published_; }
  UpstreamPool& pool() { return pool_; }
  std::uint16_t index() const { return index_; }

  // The event goes to the core at the end of this turn.
  void emit(model::Event event) { batch_.push_back(std::move(event)); }

  model::RequestId register_exchange(Exchange& exchange);
  void unregister(model::RequestId id) { exchanges_.erase(id); }
  std::string request_name(model::RequestId id);
  // Whether it looks like one that requests are given here.
  bool gives_name(std::string_view name) const;
  void remember_name(const std::string& name, model::RequestId id);

  std::vector<iovec>& scratch_pieces() { return scratch_pieces_; }

  void account(const AccessRecord& record);
  // Room for more bytes of request bodies, within what all workers may hold together. Without room
  // the log says so. Given back by release_body().
  bool hold_body(std::size_t bytes);
  void release_body(std::size_t bytes);
  // A client's connection took bytes of an answer.
  void count_sent(std::size_t bytes) { sent_ += bytes; }
  void log_broken(const EndpointAccess& endpoint, std::string_view detail);
  // No connection could be opened, to anybody or from anybody: that is ours to mend, not an
  // engine's. Said once in a while.
  void log_shortage(std::string_view what, std::string_view why);
  // More clients than may connect. Said once in a while.
  void log_crowd(std::int64_t limit);
  // A stream was asked for, and what came instead is of no use. Said once in a while.
  void log_no_stream(std::string_view endpoint, std::string_view content_type);
  // An engine refuses our key or does not know the model. Said once in a while.
  void log_unfit(const EndpointAccess& endpoint, int status);

  // Reads on in a later turn.
  void read_later(Session& session) { read_later_.push_back(&session); }
  // Destroys at the end of the turn: the session may be on the call stack.
  void bury(Session& session) { buried_.push_back(&session); }

 private:
  struct Series;

  Worker(Shared& shared, std::unique_ptr<net::Loop> loop, net::Fd listener,
         std::shared_ptr<net::TlsContext> tls);
  void take(net::Fd connection, const net::Address& peer);
  void carry(const model::Action& action);
  void end_turn();
  void digest_progress();
  bool due(std::optional<Instant>& told) const;
  Series& series(const AccessRecord& record);

  Shared& shared_;
  std::unique_ptr<net::Loop> loop_;
  std::unique_ptr<net::Acceptor> acceptor_;  // null once the process drains
  std::shared_ptr<net::TlsContext> tls_;
  std::shared_ptr<const Published> published_;
  UpstreamPool pool_;
  std::uint16_t index_ = 0;
  std::uint64_t next_request_ = 0;
  std::vector<model::Event> batch_;
  std::unordered_map<model::RequestId, Exchange*> exchanges_;
  std::unordered_map<Session*, std::unique_ptr<Session>> sessions_;
  std::vector<Session*> read_later_;
  std::vector<Session*> buried_;
  std::vector<iovec> scratch_pieces_;
  std::uint64_t sent_ = 0;  // in this turn
  std::string log_line_;
  telemetry::AccessFormat access_format_;
  std::unordered_map<std::string, std::unique_ptr<Series>> series_;  // by model, api, outcome
  std::string series_key_;
  std::optional<Instant> shortage_told_;
  std::optional<Instant> bodies_told_;
  std::optional<Instant> crowd_told_;
  std::optional<Instant> no_stream_told_;
  std::optional<Instant> unfit_told_;
  net::Timer progress_timer_;
  net::Timer sweep_timer_;
  bool draining_ = false;
};

}  // namespace signalbox::gateway
