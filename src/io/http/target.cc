// SPDX-License-Identifier: Apache-2.0
// Reads the request target and the Host field.
#include "io/http/target.h"

#include <algorithm>
#include <cstring>

#include "io/http/chars.h"

namespace signalbox::http {
namespace {

tl::unexpected<Reject> refuse(int status, std::string_view reason) {
  return tl::unexpected<Reject>(Reject{status, reason});
}

// The byte that an escape at text[i] stands for; -1 when it is broken.
int escaped_byte(std::string_view text, std::size_t i) {
  if (i + 2 >= text.size()) return -1;
  const int high = hex_value(text[i + 1]);
  const int low = hex_value(text[i + 2]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

bool escapes_are_whole(std::string_view text) {
  for (std::size_t i = text.find('%'); i != std::string_view::npos; i = text.find('%', i + 3)) {
    if (escaped_byte(text, i) <= 0) return false;  // broken, or NUL
  }
  return true;
}

// Whether a segment is "." or "..", each dot written plainly or as %2e.
bool is_dot_segment(std::string_view segment) {
  int dots = 0;
  for (std::size_t i = 0; i < segment.size(); ++dots) {
    if (segment[i] == '.') {
      i += 1;
    } else if (segment[i] == '%' && escaped_byte(segment, i) == '.') {
      i += 3;
    } else {
      return false;
    }
  }
  return dots == 1 || dots == 2;
}

bool has_dot_segment(std::string_view path) {
  while (!path.empty()) {
    path.remove_prefix(1);  // the slash
    const std::size_t end = path.find('/');
    if (is_dot_segment(path.substr(0, end))) return true;
    if (end == std::string_view::npos) break;
    path.remove_prefix(end);
  }
  return false;
}

tl::expected<Target, Reject> split_path(Target::Form form, std::string_view text) {
  const std::size_t mark = std::min(text.find('?'), text.size());
  Target t{form, text.substr(0, mark), text.substr(std::min(mark + 1, text.size()))};
  if (!escapes_are_whole(text)) {
    return refuse(400, "The request target holds a broken percent-escape.");
  }
  if (t.path.size() > 1 && t.path[1] == '/') {
    return refuse(400, "The path of the request target begins with \"//\".");
  }
  if (has_dot_segment(t.path)) {
    return refuse(400, "The path of the request target holds a \".\" or \"..\" segment.");
  }
  if (t.path.empty()) t.path = "/";
  return t;
}

tl::expected<Target, Reject> parse_absolute(std::string_view target, std::string_view host) {
  const std::size_t colon = target.find("://");
  if (colon == std::string_view::npos) {
    return refuse(400, "The request target is neither a path nor an absolute URL.");
  }
  const std::string_view scheme = target.substr(0, colon);
  if (!equals_ignoring_case(scheme, "http") && !equals_ignoring_case(scheme, "https")) {
    return refuse(400, "The scheme of the request target is neither http nor https.");
  }
  target.remove_prefix(colon + 3);
  const std::size_t end = std::min(target.find_first_of("/?"), target.size());
  const std::string_view authority = target.substr(0, end);
  if (!is_host(authority) || !equals_ignoring_case(authority, host)) {
    return refuse(400, "The authority of the request target differs from the Host field.");
  }
  return split_path(Target::Form::Absolute, target.substr(end));
}

bool is_ipv4(std::string_view text) {
  int parts = 0;
  while (!text.empty()) {
    const std::size_t dot = text.find('.');
    const std::string_view part = text.substr(0, dot);
    if (part.empty() || part.size() > 3 || !all(kDigit, part)) return false;
    unsigned value = 0;
    for (char c : part) value = value * 10 + static_cast<unsigned>(c - '0');
    if (value > 255) return false;
    ++parts;
    if (dot == std::string_view::npos) return parts == 4;
    text.remove_prefix(dot + 1);
  }
  return false;
}

// Counts the groups of a part of an IPv6 address without "::"; an IPv4 tail counts two. -1: bad.
int ipv6_groups(std::string_view text, bool may_end_in_ipv4) {
  int groups = 0;
  while (!text.empty()) {
    const std::size_t colon = text.find(':');
    const std::string_view group = text.substr(0, colon);
    const bool last = colon == std::string_view::npos;
    if (last && may_end_in_ipv4 && is_ipv4(group)) return groups + 2;
    if (group.empty() || group.size() > 4 || !all(kHex, group)) return -1;
    ++groups;
    if (last) return groups;
    text.remove_prefix(colon + 1);
    if (text.empty()) return -1;
  }
  return groups;
}

// RFC 4291 section 2.2, without a zone.
bool is_ipv6(std::string_view text) {
  const std::size_t gap = text.find("::");
  if (gap == std::string_view::npos) return ipv6_groups(text, true) == 8;
  const int before = ipv6_groups(text.substr(0, gap), false);
  const int after = ipv6_groups(text.substr(gap + 2), true);
  return before >= 0 && after >= 0 && before + after <= 7;
}

// No label is empty, but for the root's at the end: "example.com.".
bool has_labels(std::string_view name) {
  return !name.empty() && name.front() != '.' && name.find("..") == std::string_view::npos;
}

bool is_port(std::string_view text) {
  if (text.empty() || text.size() > 5 || !all(kDigit, text)) return false;
  unsigned port = 0;
  for (char c : text) port = port * 10 + static_cast<unsigned>(c - '0');
  return port <= 65535;
}

}  // namespace

Method method_of(std::string_view text) {
  switch (text.size()) {
    case 3:
      if (text == "GET") return Method::Get;
      if (text == "PUT") return Method::Put;
      break;
    case 4:
      if (text == "POST") return Method::Post;
      if (text == "HEAD") return Method::Head;
      break;
    case 5:
      if (text == "PATCH") return Method::Patch;
      if (text == "TRACE") return Method::Trace;
      break;
    case 6:
      if (text == "DELETE") return Method::Delete;
      break;
    case 7:
      if (text == "OPTIONS") return Method::Options;
      if (text == "CONNECT") return Method::Connect;
      break;
    default:
      break;
  }
  return Method::Other;
}

tl::expected<Target, Reject> parse_target(Method method, std::string_view target,
                                          std::string_view host) {
  if (target.empty() || !all(kTarget, target)) {
    return refuse(400, "The request target is empty or holds a character that a URL may not.");
  }
  return detail::split_target(method, target, host);
}

tl::expected<Target, Reject> detail::split_target(Method method, std::string_view target,
                                                  std::string_view host) {
  if (method == Method::Connect) {
    return refuse(501, "CONNECT is not offered here.");
  }
  if (target == "*") {
    if (method != Method::Options) {
      return refuse(400, "The request target \"*\" belongs to OPTIONS alone.");
    }
    return Target{Target::Form::Asterisk, target, {}};
  }
  if (target[0] == '/' && all(kPlain, target) && !target.starts_with("//")) {
    return Target{Target::Form::Origin, target, {}};
  }
  if (target[0] == '/') return split_path(Target::Form::Origin, target);
  return parse_absolute(target, host);
}

bool is_host(std::string_view value) {
  if (value.empty()) return false;
  std::size_t end = 0;
  if (value[0] == '[') {
    const std::size_t close = value.find(']');
    if (close == std::string_view::npos || !is_ipv6(value.substr(1, close - 1))) return false;
    end = close + 1;
  } else {
    while (end < value.size() && is(kHost, value[end])) ++end;
    if (!has_labels(value.substr(0, end))) return false;
  }
  if (end == value.size()) return true;
  return value[end] == ':' && is_port(value.substr(end + 1));
}

std::optional<std::string> percent_decode(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    const int byte = escaped_byte(text, i);
    if (byte < 0) return std::nullopt;
    out += static_cast<char>(byte);
    i += 2;
  }
  return out;
}

}  // namespace signalbox::http
