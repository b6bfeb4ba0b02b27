// SPDX-License-Identifier: Apache-2.0
// The parts of Cursor that need no template.
#include "io/json/cursor.h"

#include <cstring>

namespace signalbox::json {
namespace {

constexpr std::array<char, 256> make_escapes() {
  std::array<char, 256> table{};
  table['"'] = '"';
  table['\\'] = '\\';
  table['/'] = '/';
  table['b'] = '\b';
  table['f'] = '\f';
  table['n'] = '\n';
  table['r'] = '\r';
  table['t'] = '\t';
  return table;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

constinit const std::array<char, 256> kEscapes = make_escapes();

int hex4(const char* p) {
  int value = 0;
  for (int i = 0; i < 4; ++i) {
    const char c = p[i];
    int digit = 0;
    if (is_digit(c)) {
      digit = c - '0';
    } else if (c >= 'a' && c <= 'f') {
      digit = c - 'a' + 10;
    } else if (c >= 'A' && c <= 'F') {
      digit = c - 'A' + 10;
    } else {
      return -1;
    }
    value = value * 16 + digit;
  }
  return value;
}

std::size_t put_utf8(std::uint32_t code, char* out) {
  if (code < 0x80) {
    out[0] = static_cast<char>(code);
    return 1;
  }
  if (code < 0x800) {
    out[0] = static_cast<char>(0xC0 | code >> 6);
    out[1] = static_cast<char>(0x80 | (code & 0x3F));
    return 2;
  }
  if (code < 0x10000) {
    out[0] = static_cast<char>(0xE0 | code >> 12);
    out[1] = static_cast<char>(0x80 | (code >> 6 & 0x3F));
    out[2] = static_cast<char>(0x80 | (code & 0x3F));
    return 3;
  }
  out[0] = static_cast<char>(0xF0 | code >> 18);
  out[1] = static_cast<char>(0x80 | (code >> 12 & 0x3F));
  out[2] = static_cast<char>(0x80 | (code >> 6 & 0x3F));
  out[3] = static_cast<char>(0x80 | (code & 0x3F));
  return 4;
}

std::string_view Cursor::name(const Token& key) {
  if (!key.escaped) return key.raw();
  struct {
    std::array<char, 64>& out;
    std::size_t size = 0;
    bool full = false;
    void text(const char* data, std::size_t count) {
      full = full || count > out.size() - size;
      if (full) return;
      std::memcpy(out.data() + size, data, count);
      size += count;
    }
  } sink{name_};
  repeat(key, sink);
  if (sink.full) return "\xFF";
  return {name_.data(), sink.size};
}

bool Cursor::number() {
  const auto digits = [this] {
    const char* const first = p;
    while (p != end_ && is_digit(*p)) ++p;
    return p != first;
  };
  if (peek() == '-') ++p;
  if (peek() == '0') {
    ++p;
  } else if (!digits()) {
    return fail(at_end() ? kEndsEarly : "a number is malformed");
  }
  if (peek() == '.') {
    ++p;
    if (!digits()) return fail("a number has no digit behind its point");
  }
  if (peek() == 'e' || peek() == 'E') {
    ++p;
    if (peek() == '+' || peek() == '-') ++p;
    if (!digits()) return fail("a number has no digit in its exponent");
  }
  return true;
}

bool Cursor::literal(std::string_view word) {
  if (static_cast<std::size_t>(end_ - p) < word.size() ||
      std::memcmp(p, word.data(), word.size()) != 0) {
    return fail("a value is neither string, number, object, array, true, false nor null");
  }
  p += word.size();
  return true;
}

bool Cursor::skip(int depth) {
  switch (peek()) {
    case '"': {
      NoText none;
      return string(none);
    }
    case '{':
      return object(depth + 1, [&](const Token&) { return skip(depth + 1); });
    case '[':
      return array(depth + 1, [&] { return skip(depth + 1); });
    case 't':
      return literal("true");
    case 'f':
      return literal("false");
    case 'n':
      return literal("null");
    default:
      if (peek() == '-' || is_digit(peek())) return number();
      return at_end() ? fail(kEndsEarly) : literal("null");
  }
}

}  // namespace signalbox::json
