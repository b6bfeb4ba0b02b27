// SPDX-License-Identifier: Apache-2.0
// Connect, send, read head, read body, give back: the life of an engine connection.
#include "io/gateway/upstream.h"

#include <cstring>

#include "io/gateway/exchange.h"
#include "io/gateway/published.h"
#include "io/gateway/upstream_pool.h"

namespace signalbox::gateway {
namespace {

using Status = net::IoResult::Status;

// One read; a turn takes at most this many from one engine so that others are served.
constexpr std::size_t kReadSize = 64 * 1024;
constexpr int kReadsPerTurn = 16;

char* scratch() {
  thread_local char buffer[kReadSize];
  return buffer;
}

}  // namespace

Result<std::unique_ptr<Upstream>> Upstream::open(net::Loop& loop, UpstreamPool& pool,
                                                 model::EndpointId endpoint,
                                                 const net::Address& address,
                                                 const std::shared_ptr<net::TlsContext>& tls,
                                                 const std::string& server_name,
                                                 const http::Limits& limits) {
  TRY_ASSIGN(net::Stream stream, net::Stream::connecting(address, tls, server_name));
  std::unique_ptr<Upstream> upstream(
      new Upstream(loop, pool, endpoint, std::move(stream), limits));
  upstream->address_ = address;
  upstream->tls_ = tls;
  upstream->server_name_ = server_name;
  TRY_CHECK(loop.watch(upstream->stream_.fd(), *upstream));
  return upstream;
}

Upstream::Upstream(net::Loop& loop, UpstreamPool& pool, model::EndpointId endpoint,
                   net::Stream stream, const http::Limits& limits)
    : loop_(loop), pool_(pool), endpoint_(endpoint), stream_(std::move(stream)), limits_(limits),
      parser_(limits) {}

bool Upstream::reaches(const EndpointAccess& access) const {
  return access.id == endpoint_ && access.address == address_ && access.tls == tls_ &&
         access.server_name == server_name_;
}

Upstream::~Upstream() {
  abandon();
  if (self_) *self_ = nullptr;
}

void Upstream::abandon() {
  if (state_ == State::Closed) return;
  state_ = State::Closed;
  exchange_ = nullptr;
  if (stream_) loop_.unwatch(stream_.fd(), *this);
  stream_.close();
}

void Upstream::start(Exchange& exchange, std::vector<iovec> pieces, http::AnswerTo asked) {
  exchange_ = &exchange;
  pieces_ = std::move(pieces);
  next_piece_ = 0;
  asked_ = asked;
  parser_.reset(asked);
  head_.clear();
  in_body_ = answered_ = paused_ = readable_ = false;
  ++exchanges_;
  if (state_ == State::Connecting) return;  // the writable edge will come
  state_ = State::Busy;
  write_pending();
}

void Upstream::on_ready(std::uint32_t events) {
  if (state_ == State::Closed) return;
  // The end may come in one event with the last bytes of an answer; that edge comes only once.
  if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) ended_ = true;
  if (state_ == State::Idle) {
    // Nothing was asked: the engine closed, or broke the protocol. Either way it is of no use.
    if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) pool_.drop(*this);
    return;
  }
  if (state_ == State::Connecting) {
    if (const int error = stream_.connect_error(); error != 0) {
      return broke(Broke::Connect, std::strerror(error));
    }
    if (!(events & EPOLLOUT)) return;
    state_ = State::Busy;
    connected_at_ = loop_.now();
  }
  write_pending();
  if (state_ != State::Busy) return;
  if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) read_ready();
}

void Upstream::write_pending() {
  while (next_piece_ < pieces_.size()) {
    const auto left = pieces_.size() - next_piece_;
    const net::IoResult put =
        stream_.write(&pieces_[next_piece_], static_cast<int>(std::min<std::size_t>(left, 512)));
    if (put.status == Status::WouldBlock) return;
    if (put.status != Status::Ok) {
      // The engine may have answered (413, 503) and closed before it read everything.
      return read_ready();
    }
    std::size_t bytes = put.bytes;
    while (next_piece_ < pieces_.size() && bytes >= pieces_[next_piece_].iov_len) {
      bytes -= pieces_[next_piece_++].iov_len;
    }
    if (bytes > 0) {
      iovec& piece = pieces_[next_piece_];
      piece.iov_base = static_cast<char*>(piece.iov_base) + bytes;
      piece.iov_len -= bytes;
    }
  }
}

void Upstream::resume() {
  if (!paused_) return;
  paused_ = false;
  if (readable_ && state_ == State::Busy) read_ready();
}

void Upstream::read_ready() {
  for (int reads = 0; state_ == State::Busy; ++reads) {
    if (paused_) {
      readable_ = true;
      return;
    }
    if (reads == kReadsPerTurn) {
      // The edge will not come again for what is left: go on in the next turn.
      readable_ = paused_ = true;
      return read_on_later();
    }
    const net::IoResult got = stream_.read(scratch(), kReadSize);
    if (got.status == Status::WouldBlock) return;
    if (got.status != Status::Ok) return end_of_input(got.status == Status::Closed);
    answered_ = true;
    more_ = got.bytes == kReadSize || stream_.tls();
    if (!take({scratch(), got.bytes})) return;
  }
}

// The exchange may be over and gone, and so may we, when the turn comes.
void Upstream::read_on_later() {
  if (!self_) self_ = std::make_shared<Upstream*>(this);
  loop_.post([self = self_] {
    if (*self != nullptr && (*self)->exchange_ != nullptr) (*self)->exchange_->resume_upstream();
  });
}

bool Upstream::take(std::string_view bytes) {
  if (!in_body_ && !take_head(bytes)) return state_ == State::Busy;
  return take_body(bytes);
}

bool Upstream::take_head(std::string_view& bytes) {
  while (true) {
    if (!head_.empty()) {
      head_.append(bytes);
      bytes = head_.view();
    }
    const http::Progress progress = parser_.parse(bytes);
    if (progress == http::Progress::Error) {
      broke(Broke::Protocol, parser_.error().reason);
      return false;
    }
    if (progress == http::Progress::NeedMore) {
      if (head_.empty()) head_.append(bytes);
      return false;
    }
    if (parser_.head().interim()) {
      const std::string rest(bytes.substr(parser_.head_length()));
      head_.clear();
      parser_.skip_interim();
      if (rest.empty()) return false;
      head_.append(rest);
      bytes = {};
      continue;
    }
    in_body_ = true;
    keep_alive_ = parser_.head().keep_alive;
    body_ = http::BodyDecoder(parser_.head().framing, limits_, http::Side::Response,
                              http::BodyDecoder::kNoCap);
    exchange_->upstream_head(parser_.head());
    if (state_ != State::Busy) return false;
    bytes.remove_prefix(parser_.head_length());
    return true;
  }
}

bool Upstream::take_body(std::string_view bytes) {
  while (!body_.done()) {
    if (bytes.empty()) {
      exchange_->upstream_read_done();
      return state_ == State::Busy;
    }
    const http::BodyStep step = body_.next(bytes);
    bytes.remove_prefix(step.consumed);
    if (!step.data.empty()) exchange_->upstream_body(step.data);
    if (state_ != State::Busy) return false;
    if (step.state == http::BodyState::Error) {
      exchange_->upstream_read_done();
      if (state_ == State::Busy) broke(Broke::Truncated, body_.error().reason);
      return false;
    }
  }
  // Bytes behind the answer were not asked for: the connection cannot be trusted any more.
  finish(keep_alive_ && !ended_ && bytes.empty() && sent() && silent());
  return false;
}

// Whether nothing stands behind the answer. A read that was not filled has shown it already.
bool Upstream::silent() {
  char byte = 0;  // the answer's own bytes are still in scratch()
  return !more_ || stream_.read(&byte, 1).status == Status::WouldBlock;
}

// A reset is no end of a body, unless the engine closed on a request that it did not want to read.
void Upstream::end_of_input(bool orderly) {
  if (!in_body_) return broke(Broke::NoAnswer, "the engine closed the connection");
  if ((orderly || !sent()) && body_.end_of_input() == http::BodyState::Done) return finish(false);
  broke(Broke::Truncated, "the engine closed the connection inside its answer");
}

void Upstream::finish(bool reusable) {
  Exchange* exchange = exchange_;
  exchange_ = nullptr;
  pieces_.clear();
  next_piece_ = 0;
  head_.shrink(0);
  if (reusable) {
    state_ = State::Idle;
    idle_since_ = loop_.now();
  } else {
    abandon();
  }
  exchange->upstream_end(reusable);
}

void Upstream::broke(Broke how, std::string_view detail) {
  Exchange* exchange = exchange_;
  const std::string text(detail);
  abandon();
  if (exchange != nullptr) exchange->upstream_broke(how, text);
}

}  // namespace signalbox::gateway
