// SPDX-License-Identifier: Apache-2.0
// One client connection: reads requests through the strict parser, one at a time, and writes
// answers with bounded buffering. What a request means is the Exchange's business.
// Runs on its worker's thread. Keeps INV-6 (a client that leaves is noticed in every phase) and
// INV-8 (a slow reader holds a bounded buffer).
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "io/gateway/exchange.h"
#include "io/http/body_decoder.h"
#include "io/http/head_parser.h"
#include "io/net/buffer.h"
#include "io/net/loop.h"
#include "io/net/stream.h"
#include "io/net/timer.h"

namespace signalbox::gateway {

class Worker;

class Session final : public net::Watcher {
 public:
  Session(Worker& worker, net::Stream stream, const net::Address& peer);
  ~Session();

  // Registers with the loop and reads what is there.
  void begin();

  void on_ready(std::uint32_t events) override;

  // Reads what came while the previous request was answered.
  void read_again();

  // --- for the exchange ---

  // Sends the pieces in order: at once what the socket takes, the rest when it does.
  void send(std::span<const iovec> pieces);
  void send(std::string_view bytes);
  // The client takes its bytes too slowly: stop reading from the engine until client_drained().
  bool congested() const { return out_.size() > buffer_max_; }
  // The answer went out whole. The connection goes on to its next request if `keep_alive`.
  void answered(bool keep_alive);
  // The answer cannot be completed: closes so that the client does not take it for whole.
  void fail();

  const std::string& peer_ip() const { return peer_ip_; }
  // Bytes given to send(), whether or not the client has taken them yet.
  std::uint64_t bytes_out() const { return bytes_out_; }
  // The process drains: no further request on this connection.
  void stop_after_this();
  bool last() const { return closing_; }
  bool idle() const { return phase_ == Phase::Head && !parser_.started(); }
  // The core has still to say how its request ends.
  bool awaited() const { return exchange_.open(); }

 private:
  enum class Phase : std::uint8_t { Handshake, Head, Body, Exchange, Flush, Linger, Closed };

  void read_ready();
  void advance();
  bool advance_head();
  bool advance_body();
  bool take_chunks();
  bool turned_away();
  bool room_for_body(std::size_t bytes);
  void release_body();
  void start_exchange();
  Exchange::Read head_read() const;
  void refuse(int status, std::string_view reason);
  void leave();
  void flush();
  void end_flush();
  void linger();
  void close();
  void arm(Duration limit);
  void await_first();
  void await_body();
  void timed_out();
  void next_request();

  Worker& worker_;
  net::Stream stream_;
  std::string peer_ip_;
  Phase phase_ = Phase::Head;
  net::Buffer in_;
  net::Buffer out_;
  std::size_t buffer_max_;
  http::RequestParser parser_;
  http::BodyDecoder decoder_;
  net::Buffer decoded_;           // a chunked body
  std::size_t raw_body_ = 0;      // bytes of in_ behind the head that were decoded
  std::size_t request_bytes_ = 0; // head and body in in_
  std::size_t body_held_ = 0;     // of the body, as the worker counts all of them
  Instant request_begun_{};       // its first byte
  Instant body_begun_{};          // the end of its head
  bool keep_alive_ = true;
  bool closing_ = false;          // no request after this one
  bool continue_sent_ = false;
  bool head_checked_ = false;     // turned_away() was asked
  bool unread_ = false;           // the socket may hold bytes whose edge has passed
  bool handshaking_ = false;      // TLS is not up yet
  bool ended_ = false;            // the client sends nothing after what the socket holds
  bool end_sent_ = false;         // while lingering: the client knows that no more comes
  std::size_t lingered_ = 0;
  Instant linger_until_{};
  std::uint64_t bytes_out_ = 0;
  net::Timer timer_;
  Exchange exchange_;
};

}  // namespace signalbox::gateway
