// SPDX-License-Identifier: Apache-2.0
// Read, parse, hand over, write, and close in good order.
#include "io/gateway/session.h"

#include <algorithm>
#include <utility>

#include "io/gateway/answers.h"
#include "io/gateway/worker.h"
#include "io/http/writer.h"

namespace signalbox::gateway {
namespace {

using Status = net::IoResult::Status;

constexpr std::size_t kHeadRead = 4096;
constexpr std::size_t kBodyRead = 256 * 1024;
constexpr std::size_t kKeptBuffer = 16 * 1024;  // an idle connection keeps no more
// After a refusal we read on and drop what comes, so that our answer is not lost to a reset: bytes
// in all and in one turn, silence, and the time of it all.
constexpr std::size_t kLingerBytes = 64 << 20;
constexpr std::size_t kLingerTurn = 1 << 20;
constexpr Duration kLingerSilence = std::chrono::seconds(1);
constexpr Duration kLingerTime = std::chrono::seconds(10);

}  // namespace

Session::Session(Worker& worker, net::Stream stream, const net::Address& peer)
    : worker_(worker), stream_(std::move(stream)), peer_ip_(peer.ip()),
      buffer_max_(worker.published().client_buffer), parser_(worker.published().http_limits),
      timer_([this] { timed_out(); }), exchange_(worker, *this) {}

Session::~Session() {
  release_body();
  if (stream_) worker_.loop().unwatch(stream_.fd(), *this);
}

void Session::begin() {
  if (!worker_.loop().watch(stream_.fd(), *this)) return close();
  handshaking_ = stream_.tls();
  if (handshaking_) arm(worker_.published().timeouts.tls_handshake);
  else await_first();
}

// Without keep-alive, too, a client has a moment to say what it came for.
void Session::await_first() {
  const spec::Timeouts& timeouts = worker_.published().timeouts;
  arm(std::max(timeouts.keep_alive_idle, timeouts.request_head));
}

// More of a body within its silence, and all of it within its whole time.
void Session::await_body() {
  const spec::Timeouts& timeouts = worker_.published().timeouts;
  const Duration left = timeouts.request_body - (worker_.loop().now() - body_begun_);
  arm(std::clamp(left, Duration::zero(), timeouts.body_idle));
}

void Session::arm(Duration limit) { worker_.loop().arm_after(timer_, limit); }

void Session::on_ready(std::uint32_t events) {
  if (phase_ == Phase::Closed) return;
  if ((events & EPOLLOUT) && !out_.empty()) flush();
  if (phase_ == Phase::Closed) return;
  if (phase_ == Phase::Linger && !end_sent_) {
    end_sent_ = stream_.end_writing() != Status::WouldBlock;
  }
  if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) ended_ = true;
  const bool busy = phase_ == Phase::Exchange || phase_ == Phase::Flush;
  if (busy && (events & EPOLLIN)) {
    unread_ = true;  // waits in the socket until this request is done
    ended_ = ended_ || stream_.peer_ended();
  }
  if (!busy && (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))) read_ready();
  if (handshaking_ && phase_ != Phase::Closed && stream_.secured()) {
    handshaking_ = false;
    if (idle()) await_first();
  }
  // The end may come in one event with the request itself. A client that closes and one that only
  // ends its sending look alike; both have left.
  const bool answering = phase_ == Phase::Exchange || phase_ == Phase::Flush;
  if (answering && ended_) {
    exchange_.client_gone();
    close();
  }
}

void Session::read_ready() {
  const std::size_t linger_turn = lingered_ + kLingerTurn;
  while (phase_ == Phase::Head || phase_ == Phase::Body || phase_ == Phase::Linger) {
    std::size_t wanted = kHeadRead;
    if (phase_ == Phase::Linger) {
      in_.clear();
      wanted = kBodyRead;
    } else if (phase_ == Phase::Body) {
      wanted = kBodyRead;
      if (decoder_.state() != http::BodyState::Error && request_bytes_ > in_.size()) {
        wanted = std::min(wanted, request_bytes_ - in_.size());
      }
    }
    char* space = in_.prepare(wanted);
    if (phase_ == Phase::Body) parser_.head().rebase(in_.view().data());
    const net::IoResult got = stream_.read(space, wanted);
    if (got.status == Status::WouldBlock) return;
    if (got.status != Status::Ok) return leave();
    if (phase_ == Phase::Linger) {
      lingered_ += got.bytes;
      if (lingered_ > kLingerBytes || worker_.loop().now() >= linger_until_) return close();
      arm(kLingerSilence);
      if (lingered_ >= linger_turn) return worker_.read_later(*this);
      continue;
    }
    in_.commit(got.bytes);
    advance();
    // A short read of a plain connection took all there was; the next edge brings more.
    unread_ = got.bytes == wanted || stream_.tls();
    if (!unread_ && !ended_) return;
  }
}

void Session::read_again() {
  if (phase_ == Phase::Head) advance();
  read_ready();
}

void Session::advance() {
  while (true) {
    if (phase_ == Phase::Head && !advance_head()) return;
    if (phase_ == Phase::Body && !advance_body()) return;
    if (phase_ != Phase::Head || in_.empty()) return;
  }
}

bool Session::advance_head() {
  if (in_.empty()) return false;
  const bool started = parser_.started();
  if (!started) request_begun_ = worker_.loop().now();
  const http::Progress progress = parser_.parse(in_.view());
  if (progress == http::Progress::Error) {
    refuse(parser_.error().status, parser_.error().reason);
    return false;
  }
  if (progress == http::Progress::NeedMore) {
    if (!started && parser_.started()) arm(worker_.published().timeouts.request_head);
    return false;
  }
  const http::RequestHead& head = parser_.head();
  keep_alive_ = head.keep_alive && !closing_;
  continue_sent_ = head_checked_ = false;
  raw_body_ = 0;
  decoded_.clear();
  request_bytes_ = parser_.head_length();
  phase_ = Phase::Body;
  body_begun_ = worker_.loop().now();
  decoder_ = http::BodyDecoder(head.framing, worker_.published().http_limits, http::Side::Request,
                               worker_.published().body_max);
  if (decoder_.state() == http::BodyState::Error) {
    refuse(decoder_.error().status, decoder_.error().reason);
    return false;
  }
  if (head.framing.kind == http::Framing::Kind::Length) {
    request_bytes_ += static_cast<std::size_t>(head.framing.length);
  }
  await_body();
  return true;
}

bool Session::advance_body() {
  const http::RequestHead& head = parser_.head();
  const bool chunked = head.framing.kind == http::Framing::Kind::Chunked;
  if (chunked && !take_chunks()) return false;
  if (!chunked && in_.size() < request_bytes_) {
    if (turned_away() || !room_for_body(in_.size() - parser_.head_length())) return false;
    if (head.expect_continue && !continue_sent_ && in_.size() == parser_.head_length()) {
      continue_sent_ = true;
      send(http::kContinue);
    }
    await_body();
    // One allocation for the whole request instead of doubling up to it.
    in_.prepare(request_bytes_ - in_.size());
    parser_.head().rebase(in_.view().data());
    return false;
  }
  start_exchange();
  return true;
}

// Whether the head was enough to refuse the request. Then nobody waits for its body, nor holds it.
bool Session::turned_away() {
  if (std::exchange(head_checked_, true)) return false;
  parser_.head().rebase(in_.view().data());
  phase_ = Phase::Exchange;
  if (exchange_.turn_away(parser_.head(), request_begun_)) return true;
  if (phase_ == Phase::Exchange) phase_ = Phase::Body;
  return false;
}

// Bodies that came with their head need none: they are no larger than one read.
bool Session::room_for_body(std::size_t bytes) {
  if (bytes <= body_held_) return true;
  if (!worker_.hold_body(bytes - body_held_)) {
    refuse(503, "This gateway holds as many request bodies as it may. Try again.");
    return false;
  }
  body_held_ = bytes;
  return true;
}

void Session::release_body() {
  if (body_held_ > 0) worker_.release_body(std::exchange(body_held_, 0));
}

bool Session::take_chunks() {
  std::string_view rest = in_.view().substr(parser_.head_length() + raw_body_);
  while (!rest.empty() && !decoder_.done()) {
    const http::BodyStep step = decoder_.next(rest);
    if (step.state == http::BodyState::Error) {
      refuse(decoder_.error().status, decoder_.error().reason);
      return false;
    }
    decoded_.append(step.data);
    rest.remove_prefix(step.consumed);
    raw_body_ += step.consumed;
  }
  if (decoder_.done()) {
    request_bytes_ = parser_.head_length() + raw_body_;
    return true;
  }
  if (turned_away() || !room_for_body(decoded_.size())) return false;
  if (parser_.head().expect_continue && !continue_sent_ && raw_body_ == 0) {
    continue_sent_ = true;
    send(http::kContinue);
  }
  // Chunks of a byte each are mostly framing: what was decoded is not kept.
  in_.truncate(parser_.head_length());
  raw_body_ = 0;
  request_bytes_ = 0;
  await_body();
  return false;
}

void Session::start_exchange() {
  phase_ = Phase::Exchange;
  timer_.disarm();
  parser_.head().rebase(in_.view().data());
  const bool chunked = parser_.head().framing.kind == http::Framing::Kind::Chunked;
  const std::string_view body =
      chunked ? decoded_.view()
              : in_.view().substr(parser_.head_length(), request_bytes_ - parser_.head_length());
  exchange_.begin(parser_.head(), body, keep_alive_);
}

Exchange::Read Session::head_read() const {
  return phase_ == Phase::Body ? Exchange::Read::Head : Exchange::Read::PartOfHead;
}

void Session::refuse(int status, std::string_view reason) {
  const Exchange::Read read = head_read();
  keep_alive_ = false;
  phase_ = Phase::Exchange;
  parser_.head().rebase(in_.view().data());
  exchange_.refuse_unread(status, reason, parser_.head(), read, request_begun_);
}

// The client is gone, perhaps inside a request.
void Session::leave() {
  if (phase_ == Phase::Body || (phase_ == Phase::Head && parser_.started())) {
    parser_.head().rebase(in_.view().data());
    exchange_.left_unread(parser_.head(), head_read(), request_begun_);
  }
  close();
}

void Session::answered(bool keep_alive) {
  if (phase_ == Phase::Closed) return;
  keep_alive_ = keep_alive_ && keep_alive && !closing_;
  phase_ = Phase::Flush;
  if (out_.empty()) return end_flush();
  arm(worker_.published().timeouts.write_idle);
}

void Session::end_flush() {
  if (!keep_alive_) return linger();
  next_request();
}

void Session::next_request() {
  in_.consume(request_bytes_);
  decoded_.clear();
  decoded_.shrink(0);
  in_.shrink(kKeptBuffer);
  release_body();
  parser_.reset();
  request_bytes_ = 0;
  phase_ = Phase::Head;
  arm(worker_.published().timeouts.keep_alive_idle);
  // A pipelined request, or bytes whose edge came while we were busy, are read in a later turn, so
  // that one connection cannot starve the others.
  if (unread_ || !in_.empty()) worker_.read_later(*this);
}

void Session::linger() {
  phase_ = Phase::Linger;
  end_sent_ = stream_.end_writing() != Status::WouldBlock;
  linger_until_ = worker_.loop().now() + kLingerTime;
  arm(kLingerSilence);
  read_ready();
}

void Session::send(std::string_view bytes) {
  const iovec piece{const_cast<char*>(bytes.data()), bytes.size()};
  send(std::span(&piece, 1));
}

void Session::send(std::span<const iovec> pieces) {
  if (phase_ == Phase::Closed) return;
  std::size_t written = 0;
  if (out_.empty()) {
    const net::IoResult put = stream_.write(pieces.data(), static_cast<int>(pieces.size()));
    if (put.status == Status::Failed || put.status == Status::Closed) {
      // The hang-up edge follows and ends the exchange in its own turn.
      return;
    }
    written = put.bytes;
    worker_.count_sent(written);
  }
  const bool was_empty = out_.empty();
  for (const iovec& piece : pieces) {
    bytes_out_ += piece.iov_len;
    if (written >= piece.iov_len) {
      written -= piece.iov_len;
      continue;
    }
    out_.append({static_cast<const char*>(piece.iov_base) + written, piece.iov_len - written});
    written = 0;
  }
  if (was_empty && !out_.empty()) arm(worker_.published().timeouts.write_idle);
}

void Session::flush() {
  while (!out_.empty()) {
    const net::IoResult put = stream_.write(out_.view());
    if (put.status == Status::WouldBlock) return;
    if (put.status != Status::Ok) {
      exchange_.client_gone();
      return close();
    }
    worker_.count_sent(put.bytes);
    out_.consume(put.bytes);
    arm(worker_.published().timeouts.write_idle);
  }
  timer_.disarm();
  out_.shrink(kKeptBuffer);
  if (phase_ == Phase::Flush) return end_flush();
  if (phase_ == Phase::Exchange) exchange_.resume_upstream();
}

void Session::fail() {
  // What was buffered still goes out as far as it fits; then the connection ends unclean.
  stream_.reset_on_close();
  close();
}

void Session::stop_after_this() {
  closing_ = true;
  if (idle()) close();
}

void Session::timed_out() {
  switch (phase_) {
    case Phase::Head:
      if (parser_.started()) return refuse(408, "The request head took too long.");
      return close();
    case Phase::Body:
      if (worker_.loop().now() - body_begun_ >= worker_.published().timeouts.request_body) {
        return refuse(408, "The request body took too long.");
      }
      return refuse(408, "The request body stopped coming.");
    case Phase::Exchange:
      exchange_.client_gone();
      return close();
    default: return close();
  }
}

void Session::close() {
  if (phase_ == Phase::Closed) return;
  phase_ = Phase::Closed;
  timer_.disarm();
  worker_.loop().unwatch(stream_.fd(), *this);
  stream_.close();
  if (!exchange_.orphan()) worker_.bury(*this);
}

}  // namespace signalbox::gateway
