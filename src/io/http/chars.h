// SPDX-License-Identifier: Apache-2.0
// Character classes of RFC 9110, RFC 9112 and RFC 3986 as one table, and the few string functions
// that the grammar needs. Locale plays no part.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace signalbox::http {

enum CharClass : std::uint8_t {
  kToken = 1,    // RFC 9110 tchar
  kTarget = 2,   // RFC 3986 pchar, "/", "?", and the brackets that clients leave unescaped
  kHost = 4,     // letters, digits, "-", ".", "_" of a host name
  kDigit = 8,
  kUpper = 16,   // characters of a method: A-Z, "-" and "_"
  kText = 32,    // field value: visible, space, tab, and bytes >= 0x80 (obs-text)
  kHex = 64,
  kPlain = 128,  // kTarget without "%", "." and "?": a path of these means what it says
};

namespace detail {
constexpr std::array<std::uint8_t, 256> make_char_table() {
  std::array<std::uint8_t, 256> table{};
  auto mark = [&](std::string_view chars, unsigned bits) {
    for (char c : chars) {
      auto& entry = table[static_cast<unsigned char>(c)];
      entry = static_cast<std::uint8_t>(entry | bits);
    }
  };
  mark("ABCDEFGHIJKLMNOPQRSTUVWXYZ", kToken | kTarget | kHost | kUpper | kPlain);
  mark("abcdefghijklmnopqrstuvwxyz", kToken | kTarget | kHost | kPlain);
  mark("0123456789", kToken | kTarget | kHost | kDigit | kHex | kPlain);
  mark("abcdefABCDEF", kHex);
  mark("!#$%&'*+-.^_`|~", kToken);
  mark("-._~!$&'()*+,;=:@/?%[]", kTarget);
  mark("-_~!$&'()*+,;=:@/[]", kPlain);
  mark("-._", kHost);
  mark("-_", kUpper);
  for (unsigned c = 0; c < 256; ++c) {
    if ((c >= 0x20 && c != 0x7f) || c == '\t') {
      table[c] = static_cast<std::uint8_t>(table[c] | kText);
    }
  }
  return table;
}
inline constexpr std::array<std::uint8_t, 256> kCharTable = make_char_table();
}  // namespace detail

constexpr bool is(CharClass wanted, char c) {
  return (detail::kCharTable[static_cast<unsigned char>(c)] & wanted) != 0;
}
constexpr bool all(CharClass wanted, std::string_view text) {
  for (char c : text) {
    if (!is(wanted, c)) return false;
  }
  return true;
}
constexpr bool is_blank(char c) { return c == ' ' || c == '\t'; }
constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; }

// -1 for anything that is no hexadecimal digit.
constexpr int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char l = lower(c);
  return l >= 'a' && l <= 'f' ? l - 'a' + 10 : -1;
}

// Equal when the case of ASCII letters is ignored.
constexpr bool equals_ignoring_case(std::string_view a, std::string_view b) {
  if (a == b) return true;
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (lower(a[i]) != lower(b[i])) return false;
  }
  return true;
}

// Without leading and trailing spaces and tabs.
constexpr std::string_view trim_blanks(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

// The media type of a Content-Type, without its parameters. To be compared ignoring case (RFC 9110
// section 8.3.1).
constexpr std::string_view media_type(std::string_view content_type) {
  return trim_blanks(content_type.substr(0, content_type.find(';')));
}

}  // namespace signalbox::http
