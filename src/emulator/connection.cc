// SPDX-License-Identifier: Apache-2.0
// Reading, framing and writing; what differs between the engines is in the heads.
#include "emulator/connection.h"

#include <ctime>

#include "emulator/engine.h"
#include "io/net/clock.h"

namespace signalbox::emulator {
namespace {

constexpr std::size_t kReadBytes = 64 * 1024;
constexpr std::size_t kPipelineBytes = 1024 * 1024;  // read ahead while a request is answered

http::Limits limits(const EmulatorOptions& options) {
  http::Limits l;
  l.body_bytes_max = options.body_bytes_max;
  return l;
}

}  // namespace

std::string_view reason_phrase(int status) {
  switch (status) {
    case 200: return "OK";
    case 204: return "No Content";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 413: return "Content Too Large";
    case 422: return "Unprocessable Content";
    case 429: return "Too Many Requests";
    case 500: return "Internal Server Error";
    case 501: return "Not Implemented";
    case 502: return "Bad Gateway";
    case 503: return "Service Unavailable";
    case 504: return "Gateway Timeout";
    default: return "Status";
  }
}

std::string http_date(std::int64_t unix_seconds) {
  const std::time_t t = unix_seconds;
  std::tm parts{};
  ::gmtime_r(&t, &parts);
  char text[40];
  return std::string(text, std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &parts));
}

Connection::Connection(net::Loop& loop, Engine& engine, net::Stream stream, bool admin_only)
    : loop_(loop),
      engine_(engine),
      stream_(std::move(stream)),
      idle_timer_([this] {
        if (in_.empty() && info_.path.empty()) close(Close::Orderly);
      }),
      parser_(limits(engine.options())),
      admin_only_(admin_only) {}

Connection::~Connection() {
  if (stream_) loop_.unwatch(stream_.fd(), *this);
}

Result<void> Connection::start() {
  await_request();
  return loop_.watch(stream_.fd(), *this);
}

// As uvicorn and llama.cpp do: a client that reuses the connection late finds it closed.
void Connection::await_request() {
  const double seconds = engine_.options().idle_close_s;
  if (seconds > 0) loop_.arm_after(idle_timer_, from_seconds(seconds));
}

void Connection::on_ready(std::uint32_t) {
  if (stream_) flush();
  if (stream_) read();
}

void Connection::read() {
  unread_ = false;
  char buffer[kReadBytes];
  while (stream_) {
    if (busy_ && in_.size() > kPipelineBytes) {
      unread_ = true;
      return;
    }
    const net::IoResult got = stream_.read(buffer, sizeof buffer);
    if (got.status == net::IoResult::Status::WouldBlock) return;
    if (got.status != net::IoResult::Status::Ok) return close(Close::Orderly);
    if (!closing_) in_.append(buffer, got.bytes);
    process();
  }
}

void Connection::process() {
  if (processing_) return;
  processing_ = true;
  while (stream_ && !busy_ && !closing_ && !in_.empty()) {
    if (info_.path.empty() && !read_head()) break;
    if (!read_body()) break;
    busy_ = true;
    idle_timer_.disarm();
    engine_.handle(*this, info_, body_);
  }
  processing_ = false;
  if (stream_ && !out_.empty()) flush();
}

// Whether the head is whole; what is needed of it is then in info_.
bool Connection::read_head() {
  const http::Progress progress = parser_.parse(in_);
  if (progress == http::Progress::NeedMore) return false;
  if (progress == http::Progress::Error) {
    refuse(parser_.error().status);
    return false;
  }
  const http::RequestHead& head = parser_.head();
  info_.method = head.method;
  info_.path = head.path();
  info_.query = head.query();
  info_.request_id = head.fields.find("x-request-id").value_or("");
  info_.rank = head.fields.find("x-data-parallel-rank").value_or("");
  info_.keep_alive = head.keep_alive;
  info_.admin_only = admin_only_;
  decoder_ = http::BodyDecoder(head.framing, limits(engine_.options()), http::Side::Request,
                               static_cast<std::uint64_t>(engine_.options().body_bytes_max.value));
  if (head.expect_continue && decoder_.state() == http::BodyState::Open)
    out_ += "HTTP/1.1 100 Continue\r\n\r\n";
  in_.erase(0, parser_.head_length());
  body_.clear();
  return true;
}

bool Connection::read_body() {
  std::size_t taken = 0;
  while (!decoder_.done() && taken < in_.size()) {
    const http::BodyStep step = decoder_.next(std::string_view(in_).substr(taken));
    taken += step.consumed;
    body_ += step.data;
    if (step.state == http::BodyState::Error) break;
  }
  in_.erase(0, taken);
  if (decoder_.state() == http::BodyState::Error) {
    refuse(decoder_.error().status);
    return false;
  }
  return decoder_.done();
}

void Connection::refuse(int status) {
  const bool vllm = engine_.options().dialect == Dialect::Vllm;
  info_ = RequestInfo{};
  info_.keep_alive = false;
  busy_ = true;
  reply(status, vllm ? "text/plain; charset=utf-8" : "application/json; charset=utf-8",
        vllm ? "Invalid HTTP request received." : "");
}

std::string Connection::head(int status, std::string_view content_type) const {
  std::string out = "HTTP/1.1 " + std::to_string(status) + " ";
  out.append(reason_phrase(status));
  if (engine_.options().dialect == Dialect::Vllm) {
    out.append("\r\ndate: ").append(engine_.date()).append("\r\nserver: uvicorn\r\n");
    if (!content_type.empty()) out.append("content-type: ").append(content_type).append("\r\n");
    if (!info_.keep_alive) out += "connection: close\r\n";
    return out;
  }
  out += "\r\nServer: llama.cpp\r\nAccess-Control-Allow-Origin: \r\n";
  if (!content_type.empty()) out.append("Content-Type: ").append(content_type).append("\r\n");
  return out += info_.keep_alive ? "Keep-Alive: timeout=5, max=100\r\n" : "Connection: close\r\n";
}

void Connection::reply(int status, std::string_view content_type, std::string_view body,
                       std::string_view fields) {
  out_ += head(status, content_type);
  out_.append(fields);
  const bool vllm = engine_.options().dialect == Dialect::Vllm;
  if (status != 204) {
    out_.append(vllm ? "content-length: " : "Content-Length: ");
    out_.append(std::to_string(body.size())).append("\r\n");
  }
  out_ += "\r\n";
  if (info_.method != http::Method::Head && status != 204) out_ += body;
  end_request();
}

void Connection::begin_stream() {
  const bool vllm = engine_.options().dialect == Dialect::Vllm;
  out_ += head(200, vllm ? "text/event-stream; charset=utf-8" : "text/event-stream");
  if (!vllm) out_ += "X-Accel-Buffering: no\r\n";
  out_ += vllm ? "transfer-encoding: chunked\r\n\r\n" : "Transfer-Encoding: chunked\r\n\r\n";
}

void Connection::end_request() {
  busy_ = false;
  exchange_ = nullptr;
  if (!info_.keep_alive) closing_ = true;
  info_ = RequestInfo{};
  parser_.reset();
  decoder_ = http::BodyDecoder();
  if (out_.empty()) await_request();
}

void Connection::flush() {
  const bool unsent = !out_.empty();
  if (!write()) return;
  if (closing_ && !busy_) return close(Close::Orderly);
  if (busy_) return;
  // A client that reads a long answer slowly is not idle before it has all of it.
  if (unsent) await_request();
  process();
  if (stream_ && unread_) read();
}

// Whether the connection lives and everything is out.
bool Connection::write() {
  while (stream_ && written_ < out_.size()) {
    const net::IoResult put = stream_.write(std::string_view(out_).substr(written_));
    if (put.status == net::IoResult::Status::WouldBlock) {
      const auto most = static_cast<std::size_t>(engine_.options().backlog_bytes_max.value);
      if (out_.size() - written_ > most) close(Close::Reset);
      return false;
    }
    if (put.status != net::IoResult::Status::Ok) {
      close(Close::Orderly);
      return false;
    }
    written_ += put.bytes;
  }
  out_.clear();
  written_ = 0;
  return static_cast<bool>(stream_);
}

void Connection::close(Close how) {
  if (!stream_) return;
  if (written_ < out_.size() && how == Close::Orderly) {
    // What has been said goes out as far as it fits.
    [[maybe_unused]] const auto put = stream_.write(std::string_view(out_).substr(written_));
  }
  if (how == Close::Reset) stream_.reset_on_close();
  idle_timer_.disarm();
  loop_.unwatch(stream_.fd(), *this);
  stream_.close();
  engine_.gone(*this);
}

}  // namespace signalbox::emulator
