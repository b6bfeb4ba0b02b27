// SPDX-License-Identifier: Apache-2.0
// Parses, prints and resolves socket addresses.
#include "io/net/address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <charconv>
#include <cstring>

namespace signalbox::net {

Result<HostPort> split_host_port(std::string_view text) {
  std::string_view host;
  std::string_view port;
  if (text.starts_with('[')) {
    const auto close = text.find("]:");
    if (close == std::string_view::npos) {
      return invalid("'" + std::string(text) + "' is no address: write [ipv6]:port.");
    }
    host = text.substr(1, close - 1);
    port = text.substr(close + 2);
  } else {
    const auto colon = text.rfind(':');
    if (colon == std::string_view::npos) {
      return invalid("'" + std::string(text) + "' has no port: write host:port.");
    }
    host = text.substr(0, colon);
    port = text.substr(colon + 1);
  }
  HostPort result{std::string(host), 0};
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), result.port);
  if (error != std::errc() || end != port.data() + port.size() || port.empty()) {
    return invalid("'" + std::string(port) + "' is no port: it must be 0..65535.");
  }
  return result;
}

Result<Address> Address::parse(std::string_view text) {
  TRY_ASSIGN(const HostPort parts, split_host_port(text));
  const std::string host = parts.host.empty() ? "0.0.0.0" : parts.host;
  Address address;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&address.storage_);
  if (::inet_pton(AF_INET, host.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(parts.port);
    address.length_ = sizeof(sockaddr_in);
    return address;
  }
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&address.storage_);
  if (::inet_pton(AF_INET6, host.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(parts.port);
    address.length_ = sizeof(sockaddr_in6);
    return address;
  }
  return invalid("'" + std::string(text) + "' is no numeric address: write 127.0.0.1:8080.");
}

Address Address::from(const sockaddr* raw, socklen_t length) {
  Address address;
  address.length_ = std::min<socklen_t>(length, sizeof address.storage_);
  std::memcpy(&address.storage_, raw, address.length_);
  return address;
}

std::uint16_t Address::port() const {
  if (family() == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in*>(&storage_)->sin_port);
  if (family() == AF_INET6) {
    return ntohs(reinterpret_cast<const sockaddr_in6*>(&storage_)->sin6_port);
  }
  return 0;
}

std::string Address::ip() const {
  char buffer[INET6_ADDRSTRLEN] = "";
  if (family() == AF_INET) {
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(&storage_)->sin_addr, buffer,
                sizeof buffer);
  } else if (family() == AF_INET6) {
    ::inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(&storage_)->sin6_addr, buffer,
                sizeof buffer);
  }
  return buffer;
}

std::string Address::text() const {
  const std::string host = family() == AF_INET6 ? "[" + ip() + "]" : ip();
  return host + ":" + std::to_string(port());
}

bool Address::loopback() const {
  if (family() == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(&storage_);
    return (ntohl(v4->sin_addr.s_addr) >> 24) == 127;
  }
  if (family() == AF_INET6) {
    return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(&storage_)->sin6_addr);
  }
  return false;
}

bool Address::any() const {
  if (family() == AF_INET) {
    return reinterpret_cast<const sockaddr_in*>(&storage_)->sin_addr.s_addr == htonl(INADDR_ANY);
  }
  if (family() == AF_INET6) {
    return IN6_IS_ADDR_UNSPECIFIED(&reinterpret_cast<const sockaddr_in6*>(&storage_)->sin6_addr);
  }
  return false;
}

Result<std::vector<Address>> resolve(const std::string& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failure = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (failure != 0) {
    return Error{Code::BadUpstream, Source::Engine, true,
                 "The name '" + host + "' cannot be resolved: " + ::gai_strerror(failure) + "."};
  }
  std::vector<Address> addresses;
  for (const addrinfo* entry = found; entry != nullptr; entry = entry->ai_next) {
    addresses.push_back(Address::from(entry->ai_addr, entry->ai_addrlen));
  }
  ::freeaddrinfo(found);
  std::sort(addresses.begin(), addresses.end(),
            [](const Address& a, const Address& b) { return a.text() < b.text(); });
  return addresses;
}

}  // namespace signalbox::net
