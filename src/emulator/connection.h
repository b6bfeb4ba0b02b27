// SPDX-License-Identifier: Apache-2.0
// One client connection of an emulated engine: reads requests one by one, buffers what is said,
// tells the engine when the client is gone. Belongs to the loop's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "emulator/options.h"
#include "io/http/body_decoder.h"
#include "io/http/head_parser.h"
#include "io/net/loop.h"
#include "io/net/stream.h"
#include "io/net/timer.h"

namespace signalbox::emulator {

class Engine;
struct Exchange;

// What a handler needs of a head, copied out of it.
struct RequestInfo {
  http::Method method = http::Method::Get;
  std::string path;
  std::string query;
  std::string request_id;  // X-Request-Id
  std::string rank;        // X-data-parallel-rank
  bool keep_alive = true;
  bool admin_only = false;  // came in on the admin address
};

class Connection final : public net::Watcher {
 public:
  enum class Close : std::uint8_t { Orderly, Reset };

  Connection(net::Loop& loop, Engine& engine, net::Stream stream, bool admin_only);
  ~Connection();

  Result<void> start();
  void on_ready(std::uint32_t events) override;

  // Answers the request at hand. `fields`: more head lines, each with its CRLF.
  void reply(int status, std::string_view content_type, std::string_view body,
             std::string_view fields = {});
  // The head of a chunked event stream; its chunks go to out().
  void begin_stream();
  // The request at hand is answered: the next may come, or the connection closes. out() goes out
  // with the next flush().
  void end_request();
  // The connection closes behind this answer, whatever its head says.
  void close_after() { info_.keep_alive = false; }
  std::string& out() { return out_; }
  // Sends what fits, and goes on to the next request if the last one is answered.
  void flush();

  // Sends what fits and closes. The object lives until the engine's next turn.
  void close(Close how);
  bool closed() const { return !stream_; }
  bool idle() const { return !busy_; }
  bool awaits_flush = false;  // the engine's: in its list for flush()

  void serve(Exchange* exchange) { exchange_ = exchange; }
  Exchange* exchange() const { return exchange_; }

 private:
  void read();
  void process();
  void await_request();
  bool read_head();
  bool read_body();
  void refuse(int status);
  std::string head(int status, std::string_view content_type) const;
  bool write();

  net::Loop& loop_;
  Engine& engine_;
  net::Stream stream_;
  net::Timer idle_timer_;    // armed between requests
  http::RequestParser parser_;
  http::BodyDecoder decoder_;
  RequestInfo info_;
  std::string in_;
  std::string body_;
  std::string out_;
  std::size_t written_ = 0;  // bytes of out_ that are gone
  Exchange* exchange_ = nullptr;
  bool admin_only_;
  bool busy_ = false;        // a request is being answered
  bool processing_ = false;
  bool closing_ = false;     // after out_ is gone
  bool unread_ = false;      // reading stopped while busy
};

// `200 OK` and the like.
std::string_view reason_phrase(int status);
// `Sun, 29 Nov 2026 17:42:16 GMT`.
std::string http_date(std::int64_t unix_seconds);

}  // namespace signalbox::emulator
