// SPDX-License-Identifier: Apache-2.0
// Numeric socket addresses, and names resolved to them.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace signalbox::net {

// An IPv4 or IPv6 address with a port.
class Address {
 public:
  // `127.0.0.1:8000` or `[::1]:8000`; a name is an error. `:8080` listens on every interface.
  static Result<Address> parse(std::string_view text);
  static Address from(const sockaddr* address, socklen_t length);

  const sockaddr* raw() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t length() const { return length_; }
  int family() const { return storage_.ss_family; }
  std::uint16_t port() const;
  std::string text() const;  // `ip:port`
  std::string ip() const;
  bool loopback() const;
  bool any() const;  // the wildcard address
  friend bool operator==(const Address& a, const Address& b) {
    return a.length_ == b.length_ && std::memcmp(&a.storage_, &b.storage_, a.length_) == 0;
  }

 private:
  sockaddr_storage storage_{};
  socklen_t length_ = 0;
};

// Splits `host:port` (`[v6]:port`). The port is required.
struct HostPort {
  std::string host;
  std::uint16_t port = 0;
};
Result<HostPort> split_host_port(std::string_view text);

// Every stream address of a name, sorted; blocks on DNS. A numeric host is returned as it is.
Result<std::vector<Address>> resolve(const std::string& host, std::uint16_t port);

}  // namespace signalbox::net
