// SPDX-License-Identifier: Apache-2.0
// The request target, read once: what routes is what authorises. Strict forms of RFC 9112 section
// 3.2; whatever two readers could understand differently is refused.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <tl/expected.hpp>

#include "io/http/reject.h"

namespace signalbox::http {

enum class Method : unsigned char { Other, Get, Head, Post, Put, Delete, Options, Patch, Connect,
                                    Trace };

// Other for a method that this list does not name. Methods are case-sensitive.
Method method_of(std::string_view text);

// Views into the target (path may be the constant "/").
struct Target {
  enum class Form { Origin, Absolute, Asterisk };
  Form form = Form::Origin;
  std::string_view path;   // as sent: begins with "/"; "*" in asterisk form
  std::string_view query;  // what follows the first "?"; empty also when there is none
};

// host: the value of the Host field, empty when an HTTP/1.0 request has none.
// Refuses: characters outside RFC 3986, fragments, broken or NUL percent-escapes, "." and ".."
// segments (escaped or not), a path that begins with "//", absolute form whose authority differs
// from Host, asterisk form with another method than OPTIONS (all 400), and CONNECT (501).
tl::expected<Target, Reject> parse_target(Method method, std::string_view target,
                                          std::string_view host);

namespace detail {
// The same for a target that is known to hold URL characters alone, and at least one.
tl::expected<Target, Reject> split_target(Method method, std::string_view target,
                                          std::string_view host);
}  // namespace detail

// A Host value: name, IPv4 or bracketed IPv6 address, then optionally ":" and a port of 0-65535.
// No user information, no blanks, no escapes, no list.
bool is_host(std::string_view value);

// Decodes %XX; nullopt when an escape is broken. "+" stays "+".
std::optional<std::string> percent_decode(std::string_view text);

}  // namespace signalbox::http
