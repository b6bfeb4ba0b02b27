// SPDX-License-Identifier: Apache-2.0
// A strict reader of IP addresses. No system call, no locale, no historical forms.
#include "core/spec/ip.h"

#include <algorithm>
#include <cstddef>

namespace signalbox::spec {
namespace {

std::optional<int> hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

bool parse_v4(std::string_view text, std::uint8_t* out) {
  for (int part = 0; part < 4; ++part) {
    int value = 0;
    std::size_t digits = 0;
    while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') {
      value = value * 10 + (text[digits] - '0');
      if (++digits > 3) return false;
    }
    if (digits == 0 || value > 255 || (digits > 1 && text[0] == '0')) return false;
    out[part] = static_cast<std::uint8_t>(value);
    text.remove_prefix(digits);
    if (part == 3) return text.empty();
    if (text.empty() || text[0] != '.') return false;
    text.remove_prefix(1);
  }
  return false;
}

// Appends the 16-bit groups of one side of `::`; a trailing IPv4 address counts as two.
bool parse_groups(std::string_view text, std::array<std::uint8_t, 16>& out, std::size_t& length) {
  length = 0;
  if (text.empty()) return true;
  while (true) {
    const std::size_t colon = text.find(':');
    const std::string_view group = text.substr(0, colon);
    if (colon == std::string_view::npos && group.find('.') != std::string_view::npos) {
      if (length > 12 || !parse_v4(group, out.data() + length)) return false;
      length += 4;
      return true;
    }
    if (group.empty() || group.size() > 4 || length > 14) return false;
    int value = 0;
    for (const char c : group) {
      const auto digit = hex_value(c);
      if (!digit) return false;
      value = value * 16 + *digit;
    }
    out[length++] = static_cast<std::uint8_t>(value >> 8);
    out[length++] = static_cast<std::uint8_t>(value & 0xFF);
    if (colon == std::string_view::npos) return true;
    text.remove_prefix(colon + 1);
  }
}

bool parse_v6(std::string_view text, std::array<std::uint8_t, 16>& out) {
  const std::size_t gap = text.find("::");
  std::array<std::uint8_t, 16> head{}, tail{};
  std::size_t head_length = 0, tail_length = 0;
  if (!parse_groups(text.substr(0, gap), head, head_length)) return false;
  if (gap == std::string_view::npos) {
    out = head;
    return head_length == 16;
  }
  if (text.substr(0, gap).find('.') != std::string_view::npos) return false;
  if (!parse_groups(text.substr(gap + 2), tail, tail_length)) return false;
  if (head_length + tail_length > 14) return false;
  out = head;
  std::copy_n(tail.begin(), tail_length, out.end() - static_cast<std::ptrdiff_t>(tail_length));
  return true;
}

bool has_prefix(const Ip& ip, std::initializer_list<std::uint8_t> prefix) {
  return std::equal(prefix.begin(), prefix.end(), ip.bytes.begin());
}

std::string hex_group(int value) {
  std::string text;
  for (int shift = 12; shift >= 0; shift -= 4) {
    const int digit = (value >> shift) & 0xF;
    if (digit == 0 && text.empty() && shift > 0) continue;
    text += "0123456789abcdef"[digit];
  }
  return text;
}

}  // namespace

std::optional<Ip> parse_ip(std::string_view text) {
  Ip ip;
  if (parse_v4(text, ip.bytes.data())) {
    ip.v4 = true;
    return ip;
  }
  ip = Ip{};
  if (text.find(':') == std::string_view::npos || !parse_v6(text, ip.bytes)) return std::nullopt;
  constexpr std::array<std::uint8_t, 12> kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
  if (std::equal(kMapped.begin(), kMapped.end(), ip.bytes.begin())) {
    Ip inner;
    inner.v4 = true;
    std::copy_n(ip.bytes.begin() + 12, 4, inner.bytes.begin());
    return inner;
  }
  return ip;
}

std::string to_string(const Ip& ip) {
  std::string text;
  if (ip.v4) {
    for (std::size_t i = 0; i < 4; ++i) {
      text += (i > 0 ? "." : "") + std::to_string(ip.bytes[i]);
    }
    return text;
  }
  int groups[8];
  for (std::size_t i = 0; i < 8; ++i) groups[i] = ip.bytes[2 * i] * 256 + ip.bytes[2 * i + 1];
  int gap = -1, gap_length = 1;  // the first longest run of at least two zero groups
  for (int i = 0; i < 8; ++i) {
    int end = i;
    while (end < 8 && groups[end] == 0) ++end;
    if (end - i > gap_length) {
      gap = i;
      gap_length = end - i;
    }
  }
  for (int i = 0; i < 8; ++i) {
    if (i == gap) {
      text += "::";
      i += gap_length - 1;
      continue;
    }
    if (!text.empty() && text.back() != ':') text += ":";
    text += hex_group(groups[i]);
  }
  return text;
}

bool is_loopback(const Ip& ip) {
  if (ip.v4) return ip.bytes[0] == 127;
  return ip == Ip{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, false};
}

bool is_unspecified(const Ip& ip) { return ip.bytes == Ip{}.bytes; }

std::string_view refusal(const Ip& ip) {
  if (is_unspecified(ip)) return "is the unspecified address";
  const bool metadata =
      ip.v4 ? has_prefix(ip, {169, 254}) || has_prefix(ip, {100, 100, 100, 200}) ||
                  has_prefix(ip, {168, 63, 129, 16}) || has_prefix(ip, {192, 0, 0, 192})
            : ip == parse_ip("fd00:ec2::254") || ip == parse_ip("fd20:ce::254") ||
                  (ip.bytes[0] == 0xFE && (ip.bytes[1] & 0xC0) == 0x80);
  if (metadata) return "is a link-local or cloud metadata address";
  if (ip.v4 ? ip.bytes[0] >= 224 : ip.bytes[0] == 0xFF) return "is a multicast or reserved address";
  // 6to4, NAT64 and IPv4-compatible forms smuggle an IPv4 address past this check.
  if (ip.v4 || is_loopback(ip)) return "";
  const bool embeds = has_prefix(ip, {0x20, 0x02}) || has_prefix(ip, {0, 0x64, 0xFF, 0x9B}) ||
                      has_prefix(ip, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  return embeds ? "hides an IPv4 address in IPv6" : "";
}

}  // namespace signalbox::spec
