// SPDX-License-Identifier: Apache-2.0
// One connection to an engine, for one exchange at a time: sends a request, reads the answer
// through the strict parser, and tells the exchange. Kept between exchanges in an UpstreamPool.
// Runs on its worker's thread.
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "core/model/ids.h"
#include "io/http/body_decoder.h"
#include "io/http/head_parser.h"
#include "io/net/buffer.h"
#include "io/net/loop.h"
#include "io/net/stream.h"

namespace signalbox::gateway {

class Exchange;
class UpstreamPool;
struct EndpointAccess;

// How a connection failed its exchange.
enum class Broke : std::uint8_t {
  Connect,    // refused, unreachable or TLS refused
  NoAnswer,   // closed before the end of a response head
  Protocol,   // an answer that HTTP/1.1 forbids
  Truncated,  // closed inside the answer's body
};

class Upstream final : public net::Watcher {
 public:
  // Begins to connect. An immediate refusal is an Error.
  static Result<std::unique_ptr<Upstream>> open(net::Loop& loop, UpstreamPool& pool,
                                                model::EndpointId endpoint,
                                                const net::Address& address,
                                                const std::shared_ptr<net::TlsContext>& tls,
                                                const std::string& server_name,
                                                const http::Limits& limits);
  ~Upstream();

  // Sends the pieces, which must stay where they are until the answer's end or abandon().
  void start(Exchange& exchange, std::vector<iovec> pieces, http::AnswerTo asked);

  // Closes; the exchange hears no more of it.
  void abandon();

  // Stops and resumes reading: the client is too slow. resume() may call the exchange.
  void pause() { paused_ = true; }
  void resume();
  bool paused() const { return paused_; }

  bool reused() const { return exchanges_ > 1; }
  bool connected() const { return state_ != State::Connecting; }
  // When it was; a TLS handshake begins there.
  Instant connected_at() const { return connected_at_; }
  bool secured() const { return stream_.secured(); }
  // A byte of the present answer has come.
  bool answered() const { return answered_; }
  // The request has gone out whole.
  bool sent() const { return next_piece_ == pieces_.size(); }
  model::EndpointId endpoint() const { return endpoint_; }
  // Whether a new connection to `access` would be made as this one was: address, trust, name.
  bool reaches(const EndpointAccess& access) const;
  Instant idle_since() const { return idle_since_; }

  void on_ready(std::uint32_t events) override;

 private:
  enum class State : std::uint8_t { Connecting, Busy, Idle, Closed };

  Upstream(net::Loop& loop, UpstreamPool& pool, model::EndpointId endpoint, net::Stream stream,
           const http::Limits& limits);
  void write_pending();
  void read_ready();
  // Takes bytes of the answer; false when the connection is of no more use to this exchange.
  bool take(std::string_view bytes);
  bool take_head(std::string_view& bytes);
  bool take_body(std::string_view bytes);
  void end_of_input(bool orderly);
  bool silent();
  void read_on_later();
  void finish(bool reusable);
  void broke(Broke how, std::string_view detail);

  net::Loop& loop_;
  UpstreamPool& pool_;
  model::EndpointId endpoint_;
  net::Address address_;
  std::shared_ptr<net::TlsContext> tls_;  // kept, so that no other one has its address
  std::string server_name_;
  net::Stream stream_;
  http::Limits limits_;
  State state_ = State::Connecting;
  Instant connected_at_{};
  Exchange* exchange_ = nullptr;
  std::vector<iovec> pieces_;
  std::size_t next_piece_ = 0;
  http::AnswerTo asked_ = http::AnswerTo::Other;
  http::ResponseParser parser_;
  http::BodyDecoder body_;
  net::Buffer head_;  // a head that came in parts
  bool in_body_ = false;
  bool keep_alive_ = false;
  bool answered_ = false;
  bool ended_ = false;     // the engine sends nothing after what the socket holds
  bool paused_ = false;
  bool readable_ = false;  // an edge came while paused
  bool more_ = false;      // the socket may hold bytes whose edge has passed
  std::shared_ptr<Upstream*> self_;  // what a posted task holds of us; null inside once we are gone
  int exchanges_ = 0;
  Instant idle_since_{};
};

}  // namespace signalbox::gateway
