// SPDX-License-Identifier: Apache-2.0
// Addresses as people write them: where we listen, engines, networks, browser origins. One strict
// grammar each, so that what was checked is what is connected to. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "core/spec/ip.h"

namespace signalbox::spec {

// Where to listen: `127.0.0.1:8080`, `[::1]:8080`, `localhost:0`. Port 0: any free one.
struct Address {
  std::string host;  // numeric, or `localhost`; IPv6 without brackets
  std::uint16_t port = 0;
  auto operator<=>(const Address&) const = default;
};
Result<Address> parse_address(std::string_view text);
std::string to_string(const Address& address);
bool is_loopback(const Address& address);

// An engine: scheme, host and port alone. No user, path, query, backslash, percent sign, zone or
// trailing dot; a host that ends in a number is a dotted quad; metadata services are refused.
struct Url {
  bool tls = false;
  std::string host;        // lower case; IPv6 without brackets
  std::uint16_t port = 0;  // never 0; from the scheme when not written
  auto operator<=>(const Url&) const = default;
};
Result<Url> parse_url(std::string_view text);
std::string to_string(const Url& url);     // always with the port
std::string host_port(const Url& url);     // `host:port`, IPv6 in brackets

// A network: `10.0.0.0/8`, `fd00::/8`, or one address. Bits beyond the prefix are zero.
struct Cidr {
  Ip ip;
  int prefix = 0;
  auto operator<=>(const Cidr&) const = default;
};
Result<Cidr> parse_cidr(std::string_view text);
std::string to_string(const Cidr& cidr);
bool contains(const Cidr& cidr, const Ip& ip);

// A browser origin: `https://app.example.com`, with a port where it is not the scheme's own, or
// `*` for every origin.
struct Origin {
  std::string text;
  auto operator<=>(const Origin&) const = default;
};
Result<Origin> parse_origin(std::string_view text);

}  // namespace signalbox::spec
