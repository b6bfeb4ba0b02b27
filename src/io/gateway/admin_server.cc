// SPDX-License-Identifier: Apache-2.0
// Connections of the admin listener.
#include "io/gateway/admin_server.h"

#include <openssl/crypto.h>

#include <algorithm>
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

AdminAnswer refusal(int status, std::string_view message) {
  return {status, "application/json", json::openai_error(message, "admin_error")};
}

// A numeric address with or without a port: no name that a browser could be tricked with. Parsed,
// since `face.cafe` is a name.
bool numeric(std::string_view host) {
  return net::Address::parse(host).has_value() ||
         net::Address::parse(std::string(host) + ":0").has_value();
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
    while (stream_ && out_.empty()) {
      // What came while an answer had to wait is taken before more is read.
      while (stream_ && out_.empty() && take()) {
      }
      if (!stream_ || !out_.empty()) return;
      const net::IoResult got = stream_.read(in_.prepare(4096), 4096);
      if (got.status == Status::WouldBlock) return;
      if (got.status != Status::Ok) return close();
      in_.commit(got.bytes);
      if (std::exchange(between_, false)) server_.loop_.arm_after(timer_, kRequest);
    }
  }

 private:
  // Answers one request of the buffer; false when there is none whole.
  bool take() {
    if (in_.empty()) return false;
    const http::Progress progress = parser_.parse(in_.view());
    if (progress == http::Progress::NeedMore) return false;
    if (progress == http::Progress::Error) {
      send(refusal(parser_.error().status, parser_.error().reason), false, false);
      return false;
    }
    const http::RequestHead& head = parser_.head();
    http::BodyDecoder decoder(head.framing, http::Limits{}, http::Side::Request, kBodyMax);
    std::string_view rest = in_.view().substr(parser_.head_length());
    std::string body;
    while (!decoder.done() && decoder.state() != http::BodyState::Error) {
      if (rest.empty()) return false;
      const http::BodyStep step = decoder.next(rest);
      body.append(step.data);
      rest.remove_prefix(step.consumed);
    }
    if (decoder.state() == http::BodyState::Error) {
      send(refusal(decoder.error().status, decoder.error().reason), false, false);
      return false;
    }
    const bool head_only = head.method == http::Method::Head;
    const bool keep = head.keep_alive;
    const AdminAnswer answer = server_.answer(head, body, trusted_);
    in_.consume(in_.size() - rest.size());
    parser_.reset();
    send(answer, keep, head_only);
    return keep;
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

AdminAnswer AdminServer::answer(const http::RequestHead& head, std::string_view body,
                                bool& trusted) const {
  if (!known_host(head.host())) {
    return refusal(403, "This Host is not known here; list it in Gateway.admin.hosts.");
  }
  const auto site = head.fields.find(http::FieldName::SecFetchSite);
  if (site && *site != "same-origin" && *site != "none") {
    return refusal(403, "Requests from other sites are refused.");
  }
  // Probes of liveness carry no token and learn nothing but that.
  const bool probe = head.path() == "/livez" || head.path() == "/readyz";
  if (access_.needs_token && !probe) {
    const KeyHash shown = hash_key(presented_key(head).key);
    if (CRYPTO_memcmp(shown.data(), access_.token.data(), shown.size()) != 0) {
      return refusal(401, "Send the admin token as 'Authorization: Bearer TOKEN'.");
    }
  }
  trusted = trusted || !probe;
  return handler_({head.method, head.path(), head.query(), body});
}

}  // namespace signalbox::gateway
