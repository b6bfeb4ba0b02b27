// SPDX-License-Identifier: Apache-2.0
// Connections of the admin listener.
#include "io/gateway/admin_server.h"

#include <openssl/crypto.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "io/gateway/identify.h"
#include "io/http/body_decoder.h"
#include "io/http/chars.h"
#include "io/http/head_parser.h"
#include "io/http/writer.h"
#include "io/json/escape.h"
#include "io/net/buffer.h"
#include "io/net/timer.h"

namespace signalbox::gateway {
namespace {

using Status = net::IoResult::Status;

constexpr Duration kIdle = std::chrono::seconds(30);    // between requests, and inside an answer
constexpr Duration kRequest = std::chrono::seconds(5);  // from its first byte, or from the accept
constexpr Duration kProbe = kRequest;                   // inside an answer to who shows no right
constexpr std::uint64_t kBodyMax = 1 << 20;
constexpr std::uint64_t kRefusedBodyMax = 64 << 10;  // read and dropped; then the refusal is read
constexpr std::uint64_t kFraming = 2;  // a body comes as at most so many times its limit of bytes
constexpr int kStepsPerTurn = 32;      // reads and answers of one connection

AdminAnswer refusal(int status, std::string_view message) {
  return {status, "application/json", json::openai_error(message, "admin_error")};
}

// A numeric address with or without a port: no name that a browser could be tricked with. Parsed,
// since `face.cafe` is a name.
bool numeric(std::string_view host) {
  return net::Address::parse(host).has_value() ||
         net::Address::parse(std::string(host) + ":0").has_value();
}

// Probes of liveness carry no token and learn nothing but that.
bool probe(const http::RequestHead& head) {
  return head.path() == "/livez" || head.path() == "/readyz";
}

}  // namespace

class AdminServer::Connection final : public net::Watcher {
 public:
  Connection(AdminServer& server, net::Stream stream)
      : server_(server), stream_(std::move(stream)), parser_(http::Limits{}),
        timer_([this] { close(); }) {}
  ~Connection() {
    if (stream_) server_.loop_.unwatch(stream_.fd(), *this);
  }

  void begin() {
    if (!server_.loop_.watch(stream_.fd(), *this)) return close();
    server_.loop_.arm_after(timer_, kRequest);
    idle_since_ = server_.loop_.now();
  }

  bool trusted() const { return trusted_; }
  bool answering() const { return !out_.empty(); }
  bool closed() const { return !stream_; }
  Instant idle_since() const { return idle_since_; }

  void close() {
    if (!stream_) return;
    timer_.disarm();
    server_.loop_.unwatch(stream_.fd(), *this);
    stream_.close();
    server_.bury(*this);
  }

  void on_ready(std::uint32_t events) override {
    if (!out_.empty() && (events & EPOLLOUT)) flush();
    for (int steps = 0; stream_ && out_.empty(); ++steps) {
      if (steps == kStepsPerTurn) return go_on_later();
      // What came while an answer had to wait is taken before more is read.
      if (take()) continue;
      if (!stream_ || !out_.empty()) return;
      const net::IoResult got = stream_.read(in_.prepare(kRead), kRead);
      if (got.status == Status::WouldBlock) return;
      if (got.status != Status::Ok) return close();
      in_.commit(got.bytes);
      if (std::exchange(between_, false)) server_.loop_.arm_after(timer_, kRequest);
    }
  }

 private:
  static constexpr std::size_t kRead = 4096;

  // The loop has others to serve; the edge will not come again for what is left.
  void go_on_later() {
    if (std::exchange(later_, true)) return;
    server_.loop_.post([server = &server_, self = this] {
      if (!server->connections_.contains(self)) return;
      self->later_ = false;
      self->on_ready(0);
    });
  }

  // Answers one request; false when there is none whole. Each byte is looked at once.
  bool take() {
    if (in_.empty()) return false;
    return (in_body_ || take_head()) && take_body();
  }

  // Who asks is looked at before the body is read.
  bool take_head() {
    const http::Progress progress = parser_.parse(in_.view());
    if (progress == http::Progress::NeedMore) return false;
    if (progress == http::Progress::Error) {
      send(refusal(parser_.error().status, parser_.error().reason), false, false);
      return false;
    }
    refused_ = server_.refuse(parser_.head());
    body_max_ = refused_ ? kRefusedBodyMax : kBodyMax;
    decoder_ = http::BodyDecoder(parser_.head().framing, http::Limits{}, http::Side::Request,
                                 body_max_);
    raw_ = 0;
    body_.clear();
    in_body_ = true;
    return true;
  }

  bool take_body() {
    std::string_view rest = in_.view().substr(parser_.head_length());
    while (!decoder_.done()) {
      if (decoder_.state() == http::BodyState::Error) {
        return refuse_body(refusal(decoder_.error().status, decoder_.error().reason));
      }
      if (raw_ > kFraming * body_max_) {
        return refuse_body(refusal(413, "The body is mostly framing."));
      }
      if (rest.empty()) {
        in_.truncate(parser_.head_length());
        return false;
      }
      const http::BodyStep step = decoder_.next(rest);
      if (!refused_) body_.append(step.data);
      rest.remove_prefix(step.consumed);
      raw_ += step.consumed;
    }
    parser_.head().rebase(in_.view().data());
    const http::RequestHead& head = parser_.head();
    const bool head_only = head.method == http::Method::Head;
    const bool keep = head.keep_alive;
    trusted_ = trusted_ || (!refused_ && !probe(head));
    const AdminAnswer answer =
        refused_ ? std::move(*refused_)
                 : server_.handler_({head.method, head.path(), head.query(), body_});
    in_.consume(in_.size() - rest.size());
    parser_.reset();
    in_body_ = false;
    send(answer, keep, head_only);
    return keep;
  }

  bool refuse_body(const AdminAnswer& why) {
    send(refused_ ? *refused_ : why, false, false);
    return false;
  }

  void send(const AdminAnswer& answer, bool keep, bool head_only) {
    keep_ = keep;
    std::string text;
    http::append_status_line(text, answer.status);
    http::append_field(text, "content-type", answer.type);
    http::append_field(text, "cache-control", "no-store");
    http::append_field(text, "x-content-type-options", "nosniff");
    if (!keep) http::append_field(text, "connection", "close");
    http::append_field(text, "content-length", answer.body.size());
    http::append_end_of_head(text);
    if (!head_only) text += answer.body;
    out_.append(text);
    server_.loop_.arm_after(timer_, trusted_ ? kIdle : kProbe);
    flush();
  }

  void flush() {
    while (!out_.empty()) {
      const net::IoResult put = stream_.write(out_.view());
      if (put.status == Status::WouldBlock) return;
      if (put.status != Status::Ok) return close();
      out_.consume(put.bytes);
    }
    if (!keep_) return close();
    between_ = true;
    server_.loop_.arm_after(timer_, kIdle);
    idle_since_ = server_.loop_.now();
  }

  AdminServer& server_;
  net::Stream stream_;
  http::RequestParser parser_;
  net::Buffer in_;
  net::Buffer out_;
  bool keep_ = true;
  bool trusted_ = false;  // once it was answered more than a probe
  bool between_ = false;  // no byte of the next request has come
  bool later_ = false;    // a later turn goes on
  bool in_body_ = false;  // the head is whole, and stands first in in_
  std::optional<AdminAnswer> refused_;  // what the head is answered with, whatever its body
  http::BodyDecoder decoder_;
  std::string body_;
  std::uint64_t raw_ = 0;  // bytes of the body as they came
  std::uint64_t body_max_ = 0;
  Instant idle_since_{};
  net::Timer timer_;
};

Result<std::unique_ptr<AdminServer>> AdminServer::create(net::Loop& loop,
                                                         const net::Address& address,
                                                         AdminAccess access, Handler handler) {
  TRY_ASSIGN(net::Fd listener, net::listen_on(address));
  std::unique_ptr<AdminServer> server(
      new AdminServer(loop, std::move(listener), std::move(access), std::move(handler)));
  TRY_CHECK(server->acceptor_.start());
  return server;
}

AdminServer::AdminServer(net::Loop& loop, net::Fd listener, AdminAccess access, Handler handler)
    : loop_(loop), access_(std::move(access)), handler_(std::move(handler)),
      acceptor_(loop, std::move(listener), [this](net::Fd connection, const net::Address&) {
        take(std::move(connection));
      }) {}

AdminServer::~AdminServer() = default;

net::Address AdminServer::listening() const { return acceptor_.address(); }

void AdminServer::take(net::Fd taken) {
  if (open_ >= kConnectionsMax) make_room();
  if (open_ >= kConnectionsMax) return;
  auto stream = net::Stream::accepted(std::move(taken), nullptr);
  if (!stream) return;
  auto connection = std::make_unique<Connection>(*this, std::move(*stream));
  Connection& reference = *connection;
  connections_.emplace(&reference, std::move(connection));
  ++open_;
  reference.begin();
}

// Who has waited longest goes: those that have shown no right to be here first, even inside an
// answer; of the others those whose answer is under way not at all.
void AdminServer::make_room() {
  Connection* out = nullptr;
  for (const auto& [connection, owned] : connections_) {
    if (connection->closed() || (connection->trusted() && connection->answering())) continue;
    if (out == nullptr || std::pair(connection->trusted(), connection->idle_since()) <
                              std::pair(out->trusted(), out->idle_since())) {
      out = connection;
    }
  }
  if (out != nullptr) out->close();
}

void AdminServer::bury(Connection& connection) {
  --open_;
  loop_.post([this, gone = &connection] { connections_.erase(gone); });
}

bool AdminServer::known_host(std::string_view host) const {
  if (host.empty() || numeric(host)) return true;
  const std::string_view name = host.substr(0, host.rfind(':'));
  const auto is_name = [&](std::string_view known) {
    return http::equals_ignoring_case(known, name);
  };
  return is_name("localhost") || std::any_of(access_.hosts.begin(), access_.hosts.end(), is_name);
}

std::optional<AdminAnswer> AdminServer::refuse(const http::RequestHead& head) const {
  if (!known_host(head.host())) {
    return refusal(403, "This Host is not known here; list it in Gateway.admin.hosts.");
  }
  const auto site = head.fields.find(http::FieldName::SecFetchSite);
  if (site && *site != "same-origin" && *site != "none") {
    return refusal(403, "Requests from other sites are refused.");
  }
  if (access_.needs_token && !probe(head)) {
    const KeyHash shown = hash_key(presented_key(head).key);
    if (CRYPTO_memcmp(shown.data(), access_.token.data(), shown.size()) != 0) {
      return refusal(401, "Send the admin token as 'Authorization: Bearer TOKEN'.");
    }
  }
  return std::nullopt;
}

}  // namespace signalbox::gateway
