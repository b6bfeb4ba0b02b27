// SPDX-License-Identifier: Apache-2.0
// IP addresses in their one strict spelling, and those that no upstream may have. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace signalbox::spec {

struct Ip {
  std::array<std::uint8_t, 16> bytes{};  // network order; IPv4 uses the first four
  bool v4 = false;
  auto operator<=>(const Ip&) const = default;
};

// Four decimal numbers without leading zeros, or IPv6 (RFC 4291, no zone, no brackets). An IPv4
// address inside IPv6 (`::ffff:1.2.3.4`) becomes IPv4. Octal, hexadecimal and short forms are none.
std::optional<Ip> parse_ip(std::string_view text);

// RFC 5952 for IPv6; no brackets.
std::string to_string(const Ip& ip);

bool is_loopback(const Ip& ip);     // 127.0.0.0/8, ::1
bool is_unspecified(const Ip& ip);  // 0.0.0.0, ::

// Why an upstream may not have this address; empty: it may. Refused are the metadata services of
// clouds with all of link-local, the unspecified address and multicast. Checked on what is written
// and again on what a name resolves to, so that no name leads there.
std::string_view refusal(const Ip& ip);

}  // namespace signalbox::spec
