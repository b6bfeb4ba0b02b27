// SPDX-License-Identifier: Apache-2.0
// A small HTTP server for the admin API and metrics: whole requests in, whole answers out, on its
// own loop's thread. Checks who asks before what is asked: Host, browser origin, token.
// Keeps: connections that ask nothing, or ask for probes and read no answer, keep nobody out; none
// holds the loop, however much it sends.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "io/gateway/published.h"
#include "io/http/head.h"
#include "io/net/acceptor.h"
#include "io/net/loop.h"
#include "io/net/stream.h"

namespace signalbox::gateway {

struct AdminRequest {
  http::Method method = http::Method::Get;
  std::string_view path;   // percent-encoded, as sent
  std::string_view query;
  std::string_view body;
};

struct AdminAnswer {
  int status = 200;
  std::string_view type = "application/json";
  std::string body;
};

struct AdminAccess {
  bool needs_token = false;
  KeyHash token{};                  // hash of the one that every request must carry
  std::vector<std::string> hosts;   // names that Host may be, without port; numeric ones are fine
};

class AdminServer {
 public:
  using Handler = std::function<AdminAnswer(const AdminRequest&)>;

  static Result<std::unique_ptr<AdminServer>> create(net::Loop& loop, const net::Address& address,
                                                     AdminAccess access, Handler handler);
  ~AdminServer();

  net::Address listening() const;
  void set_access(AdminAccess access) { access_ = std::move(access); }

 private:
  class Connection;
  AdminServer(net::Loop& loop, net::Fd listener, AdminAccess access, Handler handler);
  void take(net::Fd connection);
  // What a request of this head is refused with, whatever its body; none: it may ask.
  std::optional<AdminAnswer> refuse(const http::RequestHead& head) const;
  void make_room();
  bool known_host(std::string_view host) const;
  void bury(Connection& connection);

  static constexpr std::size_t kConnectionsMax = 256;  // a new one takes the place of an idle one

  net::Loop& loop_;
  AdminAccess access_;
  Handler handler_;
  net::Acceptor acceptor_;
  std::unordered_map<Connection*, std::unique_ptr<Connection>> connections_;
  std::size_t open_ = 0;  // the others of connections_ are closed, and gone with the turn
};

}  // namespace signalbox::gateway
