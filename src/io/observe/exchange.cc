// SPDX-License-Identifier: Apache-2.0
// The head is gathered in a string of its own; body bytes are decoded as they come.
#include "io/observe/exchange.h"

#include <utility>

#include "io/http/writer.h"

namespace signalbox::observe {

Exchange::Exchange(std::int64_t answer_bytes_max)
    : answer_bytes_max_(static_cast<std::uint64_t>(answer_bytes_max)), parser_(limits_) {}

void Exchange::begin(std::string storage) {
  parser_.reset(http::AnswerTo::Other);
  state_ = State::Open;
  started_ = in_body_ = keep_alive_ = false;
  status_ = 0;
  head_.clear();
  server_.clear();
  body_ = std::move(storage);
  body_.clear();
  reason_ = {};
}

std::string Exchange::release() { return std::exchange(body_, {}); }

Exchange::State Exchange::feed(std::string_view bytes) {
  if (state_ != State::Open || bytes.empty()) return state_;
  started_ = true;
  if (in_body_) return read_body(bytes);
  head_.append(bytes);
  return read_head();
}

Exchange::State Exchange::read_head() {
  for (;;) {
    http::Progress progress = parser_.parse(head_);
    if (progress == http::Progress::NeedMore) return state_;
    if (progress == http::Progress::Error) return fail(parser_.error().reason);
    if (!parser_.head().interim()) break;
    head_.erase(0, parser_.head_length());
    parser_.skip_interim();
    if (head_.empty()) return state_;
  }
  const http::ResponseHead& head = parser_.head();
  status_ = head.status;
  keep_alive_ = head.keep_alive;
  server_ = head.fields.find("Server").value_or("");
  decoder_ = http::BodyDecoder(head.framing, limits_, http::Side::Response, answer_bytes_max_);
  in_body_ = true;
  return read_body(std::string_view(head_).substr(parser_.head_length()));
}

Exchange::State Exchange::read_body(std::string_view bytes) {
  while (!bytes.empty() && !decoder_.done()) {
    http::BodyStep step = decoder_.next(bytes);
    bytes.remove_prefix(step.consumed);
    body_.append(step.data);
    if (step.state == http::BodyState::Error) return fail(decoder_.error().reason);
  }
  if (decoder_.state() == http::BodyState::Error) return fail(decoder_.error().reason);
  if (!decoder_.done()) return state_;
  if (!bytes.empty()) keep_alive_ = false;
  return state_ = State::Done;
}

Exchange::State Exchange::end_of_input() {
  if (state_ != State::Open) return state_;
  if (!in_body_) return fail("The connection was closed before a whole answer.");
  keep_alive_ = false;
  if (decoder_.end_of_input() == http::BodyState::Error) return fail(decoder_.error().reason);
  return state_ = State::Done;
}

Exchange::State Exchange::fail(std::string_view reason) {
  reason_ = reason;
  keep_alive_ = false;
  return state_ = State::Failed;
}

std::optional<std::string> get_request(std::string_view path, std::string_view host,
                                       std::string_view key) {
  std::string out;
  bool sound = http::append_request_line(out, "GET", path) &&
               http::append_field(out, "Host", host) &&
               http::append_field(out, "User-Agent", "signalbox") &&
               http::append_field(out, "Accept", "*/*");
  if (sound && !key.empty()) {
    sound = http::append_field(out, "Authorization", "Bearer " + std::string(key));
  }
  if (!sound) return std::nullopt;
  http::append_end_of_head(out);
  return out;
}

}  // namespace signalbox::observe
