// SPDX-License-Identifier: Apache-2.0
// The grammars of addresses. A URL with a user in it is never echoed: that may be a password.
#include "core/spec/address.h"

#include <algorithm>
#include <array>
#include <optional>

#include "core/spec/nearest.h"

namespace signalbox::spec {
namespace {

constexpr std::string_view kAddressHelp =
    "; write an address like `127.0.0.1:8080` or `[::1]:8080`.";
constexpr std::string_view kUrlHelp = "; write a URL like `http://10.0.0.7:8000`.";
constexpr std::string_view kCidrHelp = "; write a network like `10.0.0.0/8` or `fd00::/8`.";
constexpr std::string_view kOriginHelp =
    "; write an origin like `https://app.example.com`, or `*`.";

Error fault(std::string_view text, std::string_view what, std::string_view help) {
  return invalid(quote(text) + " " + std::string(what) + std::string(help));
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_char(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_';
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

std::optional<std::uint16_t> parse_port(std::string_view text) {
  if (text.empty() || text.size() > 5 || (text.size() > 1 && text[0] == '0')) return std::nullopt;
  int value = 0;
  for (const char c : text) {
    if (!is_digit(c)) return std::nullopt;
    value = value * 10 + (c - '0');
  }
  if (value > 65535) return std::nullopt;
  return static_cast<std::uint16_t>(value);
}

// Labels of 1 to 63 letters, digits, `-` and `_`, no `-` at either end, 253 in all.
bool is_host_name(std::string_view host) {
  if (host.empty() || host.size() > 253) return false;
  while (true) {
    const std::size_t dot = host.find('.');
    const std::string_view label = host.substr(0, dot);
    if (label.empty() || label.size() > 63 || label.front() == '-' || label.back() == '-') {
      return false;
    }
    if (!std::all_of(label.begin(), label.end(), is_name_char)) return false;
    if (dot == std::string_view::npos) return true;
    host.remove_prefix(dot + 1);
  }
}

// As the URL standard has it: such a host is IPv4 in some spelling, or nothing.
bool ends_in_number(std::string_view host) {
  const std::string_view last = host.substr(host.find_last_of('.') + 1);
  const bool hex = last.size() >= 2 && last[0] == '0' && (last[1] == 'x' || last[1] == 'X');
  return hex || (!last.empty() && std::all_of(last.begin(), last.end(), is_digit));
}

bool is_metadata_name(std::string_view host) {
  constexpr std::array<std::string_view, 5> kNames{"metadata", "metadata.google.internal",
                                                   "metadata.goog", "instance-data",
                                                   "instance-data.ec2.internal"};
  return std::find(kNames.begin(), kNames.end(), host) != kNames.end();
}

// Splits `host:port` and `[v6]:port`; the port keeps its text. False: brackets or colons are wrong.
struct Split {
  std::string_view host;
  std::string_view port;
  bool has_port = false;
  bool bracketed = false;
};
std::optional<Split> split(std::string_view text) {
  Split out;
  if (!text.empty() && text[0] == '[') {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) return std::nullopt;
    out.host = text.substr(1, end - 1);
    out.bracketed = true;
    text.remove_prefix(end + 1);
    if (text.empty()) return out;
    if (text[0] != ':') return std::nullopt;
  } else {
    const std::size_t colon = text.find(':');
    out.host = text.substr(0, colon);
    if (colon == std::string_view::npos) return out;
    text.remove_prefix(colon);
  }
  out.has_port = true;
  out.port = text.substr(1);
  return out;
}

std::string bracketed(std::string_view host) {
  const bool v6 = host.find(':') != std::string_view::npos;
  return v6 ? "[" + std::string(host) + "]" : std::string(host);
}

// What is wrong with the host of a URL, else empty.
std::string_view host_fault(const Split& parts) {
  if (parts.host.empty()) return "has no host";
  const auto ip = parse_ip(parts.host);
  if (parts.bracketed) {
    if (!ip || parts.host.find(':') == std::string_view::npos) return "has no IPv6 address in [ ]";
    return refusal(*ip);
  }
  if (ip) return refusal(*ip);
  if (ends_in_number(parts.host)) {
    return "spells an IP address oddly: four decimal numbers without leading zeros are accepted";
  }
  if (!is_host_name(parts.host)) return "has a host that is no DNS name";
  if (is_metadata_name(lower(parts.host))) return "names a cloud metadata service";
  return {};
}

}  // namespace

Result<Address> parse_address(std::string_view text) {
  const auto parts = split(text);
  if (!parts) return fault(text, "is no address", kAddressHelp);
  if (!parts->has_port) return fault(text, "has no port", kAddressHelp);
  const auto port = parse_port(parts->port);
  if (!port) return fault(text, "has a port outside 0 to 65535", kAddressHelp);
  if (parts->host.empty()) {
    return fault(text, "has no host", "; write `0.0.0.0` for every interface or `127.0.0.1`.");
  }
  if (lower(parts->host) == "localhost") return Address{"localhost", *port};
  const auto ip = parse_ip(parts->host);
  if (!ip || parts->bracketed != (parts->host.find(':') != std::string_view::npos)) {
    return fault(text, "has a host that is no IP address", kAddressHelp);
  }
  return Address{to_string(*ip), *port};
}

std::string to_string(const Address& address) {
  return bracketed(address.host) + ":" + std::to_string(address.port);
}

bool is_loopback(const Address& address) {
  const auto ip = parse_ip(address.host);
  return ip ? is_loopback(*ip) : address.host == "localhost";
}

Result<Url> parse_url(std::string_view text) {
  if (text.find('@') != std::string_view::npos) {
    return invalid("the URL names a user; a key goes into the pool's `api_key`.");
  }
  if (text.find('\\') != std::string_view::npos) return fault(text, "has a backslash", kUrlHelp);
  const std::size_t scheme_end = text.find("://");
  if (scheme_end == std::string_view::npos) return fault(text, "has no scheme", kUrlHelp);
  const std::string scheme = lower(text.substr(0, scheme_end));
  if (scheme != "http" && scheme != "https") {
    return fault(text, "has a scheme other than http and https", kUrlHelp);
  }
  std::string_view rest = text.substr(scheme_end + 3);
  if (const std::size_t end = rest.find_first_of("/?#"); end != std::string_view::npos) {
    const std::string_view path = rest.substr(end);
    if (path != "/") {
      return fault(text, "has more than scheme, host and port", "; remove " + quote(path) + ".");
    }
    rest = rest.substr(0, end);
  }
  const auto parts = split(rest);
  if (!parts) return fault(text, "is no URL", kUrlHelp);
  if (const auto what = host_fault(*parts); !what.empty()) return fault(text, what, kUrlHelp);
  Url url;
  url.tls = scheme == "https";
  url.port = url.tls ? 443 : 80;
  if (parts->has_port) {
    const auto port = parse_port(parts->port);
    if (!port || *port == 0) return fault(text, "has a port outside 1 to 65535", kUrlHelp);
    url.port = *port;
  }
  const auto ip = parse_ip(parts->host);
  url.host = ip ? to_string(*ip) : lower(parts->host);
  return url;
}

std::string host_port(const Url& url) {
  return bracketed(url.host) + ":" + std::to_string(url.port);
}

std::string to_string(const Url& url) {
  return (url.tls ? "https://" : "http://") + host_port(url);
}

Result<Cidr> parse_cidr(std::string_view text) {
  if (text == "*") {
    return invalid("`*` would let every peer claim any identity; list the networks of your proxies,"
                   " like `10.0.0.0/8`.");
  }
  const std::size_t slash = text.find('/');
  const auto ip = parse_ip(text.substr(0, slash));
  if (!ip) return fault(text, "has no IP address", kCidrHelp);
  Cidr cidr{*ip, ip->v4 ? 32 : 128};
  if (slash != std::string_view::npos) {
    const auto prefix = parse_port(text.substr(slash + 1));
    if (!prefix || *prefix > cidr.prefix) {
      return fault(text, "has a prefix length outside 0 to " + std::to_string(cidr.prefix),
                   kCidrHelp);
    }
    cidr.prefix = *prefix;
  }
  Cidr masked = cidr;
  for (std::size_t bit = static_cast<std::size_t>(cidr.prefix); bit < 128; ++bit) {
    masked.ip.bytes[bit / 8] &= static_cast<std::uint8_t>(~(0x80u >> (bit % 8)));
  }
  if (masked != cidr) {
    return fault(text, "has bits beyond its prefix",
                 "; write " + quote(to_string(masked)) + " or the prefix that you mean.");
  }
  if (cidr.prefix == 0) {
    return fault(text, "would let every peer claim any identity",
                 "; list the networks of your proxies, like `10.0.0.0/8`.");
  }
  return cidr;
}

std::string to_string(const Cidr& cidr) {
  return to_string(cidr.ip) + "/" + std::to_string(cidr.prefix);
}

bool contains(const Cidr& cidr, const Ip& ip) {
  if (cidr.ip.v4 != ip.v4) return false;
  for (std::size_t bit = 0; bit < static_cast<std::size_t>(cidr.prefix); ++bit) {
    const unsigned mask = 0x80u >> (bit % 8);
    if ((cidr.ip.bytes[bit / 8] & mask) != (ip.bytes[bit / 8] & mask)) return false;
  }
  return true;
}

Result<Origin> parse_origin(std::string_view text) {
  if (text == "*") return Origin{"*"};
  const std::size_t scheme_end = text.find("://");
  const std::string_view scheme = text.substr(0, scheme_end);
  if (scheme_end == std::string_view::npos || (scheme != "http" && scheme != "https")) {
    return fault(text, "has no scheme http or https", kOriginHelp);
  }
  const auto parts = split(text.substr(scheme_end + 3));
  const bool host = parts && (parts->bracketed ? parse_ip(parts->host).has_value()
                                               : is_host_name(parts->host));
  const bool port = !parts || !parts->has_port || parse_port(parts->port).value_or(0) > 0;
  if (!host || !port) return fault(text, "is no origin", kOriginHelp);
  if (lower(text) != text) return fault(text, "has capital letters", kOriginHelp);
  return Origin{std::string(text)};
}

}  // namespace signalbox::spec
