// SPDX-License-Identifier: Apache-2.0
// Appends the parts of HTTP/1.1 messages to a string. Nothing that a peer or a user supplied can
// break out of its place: what holds CR, LF, NUL or another control is left out.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "io/http/fields.h"

namespace signalbox::http {

// "HTTP/1.1 200 OK\r\n". An unlisted status of 100-999 gets an empty reason.
void append_status_line(std::string& out, int status);

// "POST /v1/models HTTP/1.1\r\n". False, and nothing is appended, when method or target holds a
// character that it may not.
bool append_request_line(std::string& out, std::string_view method, std::string_view target);

// "name: value\r\n". False, and nothing is appended, when the name is no token or the value holds
// a control other than tab.
bool append_field(std::string& out, std::string_view name, std::string_view value);
void append_field(std::string& out, std::string_view name, std::uint64_t value);
// A field of a parsed head, which is sound already.
void append_field(std::string& out, const Field& field);

// The blank line that ends a head.
inline void append_end_of_head(std::string& out) { out += "\r\n"; }

// A chunk is its header, `size` bytes of data, and kChunkEnd. size > 0: a chunk of none would end
// the body.
class ChunkHeader {
 public:
  explicit ChunkHeader(std::uint64_t size);
  std::string_view text() const { return {text_.data() + begin_, text_.size() - begin_}; }

 private:
  std::array<char, 18> text_;  // 16 digits and CRLF
  std::size_t begin_;
};
inline constexpr std::string_view kChunkEnd = "\r\n";
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";
inline constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

// The whole chunk; nothing when data is empty.
void append_chunk(std::string& out, std::string_view data);

// "OK" for 200; empty for a status that RFC 9110 does not name.
std::string_view reason_phrase(int status);

}  // namespace signalbox::http
