// SPDX-License-Identifier: Apache-2.0
// One GET: the request's bytes out, one whole answer in. Sans I/O; used by one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "io/http/body_decoder.h"
#include "io/http/head_parser.h"
#include "io/http/limits.h"

namespace signalbox::observe {

class Exchange {
 public:
  enum class State : std::uint8_t { Open, Done, Failed };

  explicit Exchange(std::int64_t answer_bytes_max);

  // For the next answer. `storage` becomes the memory of the body; take it back with release().
  void begin(std::string storage);
  std::string release();

  State feed(std::string_view bytes);
  // The peer closed.
  State end_of_input();

  bool started() const { return started_; }  // a byte of the answer has come
  // After Done. Bytes behind the answer make the connection unfit: keep_alive() is false.
  int status() const { return status_; }
  std::string_view server() const { return server_; }
  std::string_view body() const { return body_; }
  bool keep_alive() const { return keep_alive_; }
  // After Failed: why, static text.
  std::string_view reason() const { return reason_; }

 private:
  State read_head();
  State read_body(std::string_view bytes);
  State fail(std::string_view reason);

  http::Limits limits_;
  std::uint64_t answer_bytes_max_;
  http::ResponseParser parser_;
  http::BodyDecoder decoder_;
  State state_ = State::Open;
  bool started_ = false;
  bool in_body_ = false;
  bool keep_alive_ = false;
  int status_ = 0;
  std::string head_;
  std::string server_;
  std::string body_;
  std::string_view reason_;
};

// The request. `key`: sent as bearer token; empty: none. Nothing when path, host or key hold bytes
// that no head may hold.
std::optional<std::string> get_request(std::string_view path, std::string_view host,
                                       std::string_view key);

}  // namespace signalbox::observe
