// SPDX-License-Identifier: Apache-2.0
// Cursor: reads JSON text (RFC 8259) strictly, left to right, without a tree. Every reader of this
// module walks with it. Numbers are checked and stay text; strings are checked (escapes, surrogate
// pairs, no control characters) but their UTF-8 is the caller's matter.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "io/json/bytes.h"
#include "io/json/span.h"

namespace signalbox::json {

// A string of the text, still escaped and without its quotes.
struct Token {
  const char* data = nullptr;
  std::size_t size = 0;
  bool escaped = false;
  std::string_view raw() const { return {data, size}; }
};

// A sink takes decoded text in pieces: text(const char*, std::size_t). If it also has roomy_text(),
// it may read kSlack bytes beyond a piece there, which makes copies of short pieces cheap. This one
// drops what it gets.
struct NoText {
  void text(const char*, std::size_t) {}
};

inline constexpr std::ptrdiff_t kSlack = 16;

template <typename Sink>
void roomy_text(Sink& sink, const char* data, std::size_t size) {
  if constexpr (requires { sink.roomy_text(data, size); }) {
    sink.roomy_text(data, size);
  } else if (size != 0) {
    sink.text(data, size);
  }
}

// Every function returns false after a fault; then `what` says why and `p` where, and the cursor is
// used no more. Depth counts containers: the outermost is 1.
class Cursor {
 public:
  Cursor(std::string_view text, int depth_max)
      : p(text.data()), begin_(text.data()), end_(text.data() + text.size()),
        depth_max_(depth_max) {}

  const char* p;
  const char* what = nullptr;

  std::uint32_t offset() const { return offset(p); }
  std::uint32_t offset(const char* at) const { return static_cast<std::uint32_t>(at - begin_); }
  std::string_view text() const { return {begin_, static_cast<std::size_t>(end_ - begin_)}; }
  bool at_end() const { return p == end_; }
  // How deep containers may be nested from here on; returns what held before.
  int limit_depth(int depth_max) { return std::exchange(depth_max_, depth_max); }
  int depth_max() const { return depth_max_; }
  // Half a surrogate pair is no fault from here on and reads as U+FFFD: a stream may cut a text
  // between the halves.
  void allow_halves() { halves_ = true; }
  // The byte here; NUL at the end, which no rule of the grammar accepts.
  char peek() const { return p != end_ ? *p : '\0'; }

  bool fail(const char* why) {
    if (what == nullptr) what = why;
    return false;
  }

  void space() {
    while (p != end_ && static_cast<unsigned char>(*p) <= ' ' &&
           (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t')) {
      ++p;
    }
  }

  // A string, from its opening quote to behind its closing one.
  template <typename Sink>
  bool string(Sink& sink, Token* token = nullptr);
  bool string(Token& token) {
    NoText none;
    return string(none, &token);
  }
  // Repeats the decoded text of a string that was read before.
  template <typename Sink>
  void repeat(const Token& token, Sink& sink);
  // The decoded name of a key. Valid until the next call; an escaped name of more than 64 bytes
  // gives a view that equals no name.
  std::string_view name(const Token& key);

  bool number();
  bool literal(std::string_view word);
  // Any value; `depth` is that of the container that holds it.
  bool skip(int depth);
  // Reads `{`; calls member(const Token& key) with p at the first byte of each value, which it must
  // consume. `depth` is the object's own.
  template <typename F>
  bool object(int depth, F&& member);
  // Reads `[`; calls element() at each value.
  template <typename F>
  bool array(int depth, F&& element);

 private:
  template <typename Sink>
  bool escaped_string(Sink& sink);
  bool special_end();
  template <typename Sink>
  bool escape(Sink& sink);
  template <typename Sink>
  bool unicode_escape(Sink& sink);
  bool key(Token& token);

  const char* begin_;
  const char* end_;
  int depth_max_;
  bool halves_ = false;
  std::array<char, 64> name_{};
};

inline constexpr const char* kEndsEarly = "the text ends too early";
// An array, so that every translation unit has it at one address: `what` is compared with it.
inline constexpr char kTooDeep[] = "arrays and objects are nested deeper than allowed";

// Four hexadecimal digits; -1: not so.
int hex4(const char* p);
// Writes a code point as UTF-8; returns the number of bytes.
std::size_t put_utf8(std::uint32_t code, char* out);
// What `\c` stands for; NUL: no such escape.
extern const std::array<char, 256> kEscapes;

template <typename Sink>
bool Cursor::string(Sink& sink, Token* token) {
  const char* const first = ++p;
  p = find_special(p, end_);
  if (p != first) sink.text(first, static_cast<std::size_t>(p - first));
  const bool escaped = peek() != '"';
  if (escaped && !escaped_string(sink)) return false;
  if (token != nullptr) *token = {first, static_cast<std::size_t>(p - first), escaped};
  ++p;
  return true;
}

// The rest of a string from its first backslash to its closing quote. Escapes stand close together
// in source code, so special bytes are found for 64 bytes at once and taken one by one.
template <typename Sink>
bool Cursor::escaped_string(Sink& sink) {
  const char* run = p;
  while (end_ - p >= 64 + kSlack) {
    const char* const window = p;
    std::uint64_t mask = special_mask64(window);
    while (mask != 0) {
      p = window + std::countr_zero(mask);
      roomy_text(sink, run, static_cast<std::size_t>(p - run));
      if (*p != '\\') return special_end();
      if (const char c = kEscapes[static_cast<unsigned char>(p[1])]) {
        sink.text(&c, 1);
        p += 2;
      } else if (!escape(sink)) {
        return false;
      }
      run = p;
      mask = p - window < 64 ? mask & ~std::uint64_t{0} << (p - window) : 0;
    }
    if (p < window + 64) p = window + 64;
  }
  for (;;) {
    p = find_special(p, end_);
    if (p != run) sink.text(run, static_cast<std::size_t>(p - run));
    if (peek() != '\\') return special_end();
    if (!escape(sink)) return false;
    run = p;
  }
}

inline bool Cursor::special_end() {
  if (peek() == '"') return true;
  return fail(at_end() ? "a string is not closed"
                       : "a control character in a string is not escaped");
}

template <typename Sink>
void Cursor::repeat(const Token& token, Sink& sink) {
  if (!token.escaped) {
    if (token.size != 0) sink.text(token.data, token.size);
    return;
  }
  const char* const here = p;
  p = token.data - 1;
  static_cast<void>(string(sink));
  p = here;
}

template <typename Sink>
bool Cursor::escape(Sink& sink) {
  if (end_ - p < 2) return fail("a string is not closed");
  if (const char c = kEscapes[static_cast<unsigned char>(p[1])]) {
    sink.text(&c, 1);
    p += 2;
    return true;
  }
  if (p[1] != 'u') return fail("a backslash starts no known escape");
  return unicode_escape(sink);
}

template <typename Sink>
bool Cursor::unicode_escape(Sink& sink) {
  const int first = end_ - p >= 6 ? hex4(p + 2) : -1;
  if (first < 0) return fail("\\u is not followed by four hexadecimal digits");
  auto code = static_cast<std::uint32_t>(first);
  std::size_t length = 6;
  if (code >= 0xD800 && code < 0xE000) {
    const int second =
        code < 0xDC00 && end_ - p >= 12 && p[6] == '\\' && p[7] == 'u' ? hex4(p + 8) : -1;
    const bool paired = second >= 0xDC00 && second < 0xE000;
    if (!paired && !halves_) return fail("an escaped surrogate has no partner");
    const auto low = static_cast<std::uint32_t>(second) - 0xDC00;
    code = paired ? 0x10000 + ((code - 0xD800) << 10) + low : 0xFFFD;
    if (paired) length = 12;
  }
  char utf8[4];
  const std::size_t size = put_utf8(code, utf8);
  sink.text(utf8, size);
  p += length;
  return true;
}

inline bool Cursor::key(Token& token) {
  if (peek() != '"') return fail(at_end() ? kEndsEarly : "a key in quotes is expected");
  if (!string(token)) return false;
  space();
  if (peek() != ':') return fail(at_end() ? kEndsEarly : "a colon is expected");
  ++p;
  space();
  return true;
}

template <typename F>
bool Cursor::object(int depth, F&& member) {
  if (depth > depth_max_) return fail(kTooDeep);
  ++p;
  space();
  if (peek() == '}') {
    ++p;
    return true;
  }
  for (;;) {
    Token token;
    if (!key(token) || !member(static_cast<const Token&>(token))) return false;
    space();
    const char next = peek();
    if (next != ',') {
      if (next != '}') return fail(at_end() ? kEndsEarly : "a comma or } is expected");
      ++p;
      return true;
    }
    ++p;
    space();
  }
}

template <typename F>
bool Cursor::array(int depth, F&& element) {
  if (depth > depth_max_) return fail(kTooDeep);
  ++p;
  space();
  if (peek() == ']') {
    ++p;
    return true;
  }
  for (;;) {
    if (!element()) return false;
    space();
    const char next = peek();
    if (next != ',') {
      if (next != ']') return fail(at_end() ? kEndsEarly : "a comma or ] is expected");
      ++p;
      return true;
    }
    ++p;
    space();
  }
}

}  // namespace signalbox::json
