// SPDX-License-Identifier: Apache-2.0
// What request and response heads share: cutting lines, reading a field, and the framing fields.
// The order of checks follows the bytes, so a head is refused for the same reason however it was
// split.
#include <algorithm>
#include <limits>

#include "io/http/head_parser.h"
#include "io/http/scan.h"

namespace signalbox::http::detail {
namespace {

constexpr std::size_t kLineMax = 65535;  // a field name's size is kept in 16 bits
constexpr std::size_t kHeadMax = std::size_t{1} << 31;

std::string_view control_reason(char c) {
  switch (c) {
    case '\n':
      return "A line of the message head ends in LF alone; lines end in CRLF.";
    case '\0':
      return "The message head holds a NUL byte.";
    default:
      return "The message head holds a control character.";
  }
}

bool read_content_length(std::string_view value, FieldFacts& facts, Reject& reject) {
  if (facts.content_length) {
    reject.reason = "The message has more than one Content-Length.";
    return false;
  }
  if (value.empty() || !all(kDigit, value)) {
    reject.reason = "Content-Length is no plain decimal number.";
    return false;
  }
  std::uint64_t length = 0;
  for (char c : value) {
    const auto digit = static_cast<std::uint64_t>(c - '0');
    if (length > (std::numeric_limits<std::uint64_t>::max() - digit) / 10) {
      reject.reason = "Content-Length is too large.";
      return false;
    }
    length = length * 10 + digit;
  }
  facts.content_length = length;
  return true;
}

bool read_transfer_encoding(std::string_view value, int minor_version, FieldFacts& facts,
                            Reject& reject) {
  if (facts.chunked) {
    reject.reason = "The message has more than one Transfer-Encoding.";
    return false;
  }
  if (!equals_ignoring_case(value, "chunked")) {
    reject.reason = "Transfer-Encoding is not exactly \"chunked\".";
    return false;
  }
  if (minor_version == 0) {
    reject.reason = "An HTTP/1.0 message has no Transfer-Encoding.";
    return false;
  }
  facts.chunked = true;
  return true;
}

bool read_connection(std::string_view value, FieldFacts& facts, Reject& reject) {
  bool tokens = true;
  for_each_element(value, [&](std::string_view option) {
    if (equals_ignoring_case(option, "keep-alive")) {
      facts.keep_alive = true;
    } else if (equals_ignoring_case(option, "close")) {
      facts.close = true;
    } else {
      facts.nominates_fields = true;
      tokens = tokens && all(kToken, option);
    }
  });
  if (!tokens) reject.reason = "Connection is no list of tokens.";
  return tokens;
}

bool read_framing(const Field& field, int minor_version, FieldFacts& facts, Reject& reject) {
  switch (field.id) {
    case FieldName::ContentLength:
      if (!read_content_length(field.value, facts, reject)) return false;
      break;
    case FieldName::TransferEncoding:
      if (!read_transfer_encoding(field.value, minor_version, facts, reject)) return false;
      break;
    case FieldName::Connection:
      return read_connection(field.value, facts, reject);
    default:
      return true;
  }
  if (facts.chunked && facts.content_length) {
    reject.reason = "The message has both Content-Length and Transfer-Encoding.";
    return false;
  }
  return true;
}

}  // namespace

void LineCutter::reset(const Limits& limits) {
  line_start_ = 0;
  scanned_ = 0;
  head_max_ = std::min(static_cast<std::size_t>(limits.head_bytes_max.value), kHeadMax);
  line_max_ = std::min(static_cast<std::size_t>(limits.line_bytes_max.value), kLineMax);
}

LineCutter::Cut LineCutter::out_of_room(Reject& reject) const {
  if (line_start_ + line_max_ + 2 <= head_max_) {
    reject = {line_start_ == 0 ? 414 : 431, "A line of the message head is too long."};
  } else {
    reject = {431, "The message head is too large."};
  }
  return Cut::Bad;
}

LineCutter::Cut LineCutter::next(std::string_view buffer, Span& line, Reject& reject) {
  const std::size_t room = std::min(line_start_ + line_max_ + 2, head_max_);
  const std::size_t stop = std::min(room, buffer.size());
  const char* const base = buffer.data();
  const char* const found = find_control(base + scanned_, base + stop);
  const auto at = static_cast<std::size_t>(found - base);
  scanned_ = at;
  if (at < stop && *found != '\r') {
    reject = {400, control_reason(*found)};
    return Cut::Bad;
  }
  if (at + 1 >= stop) return stop == room ? out_of_room(reject) : Cut::NeedMore;
  if (found[1] != '\n') {
    reject = {400, "The message head holds a CR that no LF follows."};
    return Cut::Bad;
  }
  line = {static_cast<std::uint32_t>(line_start_), static_cast<std::uint32_t>(at - line_start_)};
  line_start_ = scanned_ = at + 2;
  return Cut::Line;
}

std::optional<Field> read_field(std::string_view buffer, Span line, int minor_version,
                                Fields& fields, FieldFacts& facts, Reject& reject) {
  const char* const start = buffer.data() + line.offset;
  const char* const end = start + line.size;
  const char* p = start;
  while (p != end && is(kToken, *p)) ++p;
  if (p == start || p == end || *p != ':') {
    reject = {400, p == end ? "A field line has no colon."
                            : "A field name is empty or holds a character that it may not."};
    return std::nullopt;
  }
  Field field;
  field.name = {start, static_cast<std::size_t>(p - start)};
  field.id = field_name(field.name);
  field.value = trim_blanks({p + 1, static_cast<std::size_t>(end - p - 1)});
  fields.add(field.id, line.offset, field.name.size(),
             static_cast<std::size_t>(field.value.data() - buffer.data()), field.value.size());
  reject.status = 400;
  if (!read_framing(field, minor_version, facts, reject)) return std::nullopt;
  reject.status = 0;
  return field;
}

}  // namespace signalbox::http::detail
