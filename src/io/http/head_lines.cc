// SPDX-License-Identifier: Apache-2.0
// What request and response heads share: cutting lines, reading a field, and the framing fields.
// The order of checks follows the bytes, so a head is refused for the same reason however it was
// split.
#include <algorithm>
#include <limits>

#include "io/http/head_lines.h"

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
    reject = {400, "The message has more than one Content-Length."};
    return false;
  }
  if (value.empty() || !all(kDigit, value)) {
    reject = {400, "Content-Length is no plain decimal number."};
    return false;
  }
  std::uint64_t length = 0;
  for (char c : value) {
    const auto digit = static_cast<std::uint64_t>(c - '0');
    if (length > (std::numeric_limits<std::uint64_t>::max() - digit) / 10) {
      reject = {400, "Content-Length is too large."};
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
    reject = {400, "The message has more than one Transfer-Encoding."};
    return false;
  }
  if (!equals_ignoring_case(value, "chunked")) {
    reject = {400, "Transfer-Encoding is not exactly \"chunked\"."};
    return false;
  }
  if (minor_version == 0) {
    reject = {400, "An HTTP/1.0 message has no Transfer-Encoding."};
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
  if (!tokens) reject = {400, "Connection is no list of tokens."};
  return tokens;
}

}  // namespace

void LineCutter::reset(const Limits& limits) {
  line_start_ = 0;
  scanned_ = 0;
  head_max_ = std::min(static_cast<std::size_t>(limits.head_bytes_max.value), kHeadMax);
  line_max_ = std::min(static_cast<std::size_t>(limits.line_bytes_max.value), kLineMax);
  room_ = std::min(line_max_ + 2, head_max_);
}

LineCutter::Cut LineCutter::stopped(char found, Reject& reject) const {
  reject = {400, found == '\r' ? "The message head holds a CR that no LF follows."
                               : control_reason(found)};
  return Cut::Bad;
}

LineCutter::Cut LineCutter::out_of_room(Reject& reject) const {
  if (line_start_ + line_max_ + 2 <= head_max_) {
    reject = {line_start_ == 0 ? 414 : 431, "A line of the message head is too long."};
  } else {
    reject = {431, "The message head is too large."};
  }
  return Cut::Bad;
}

bool read_framing(FieldName id, std::string_view value, int minor_version, FieldFacts& facts,
                  Reject& reject) {
  switch (id) {
    case FieldName::ContentLength:
      if (!read_content_length(value, facts, reject)) return false;
      break;
    case FieldName::TransferEncoding:
      if (!read_transfer_encoding(value, minor_version, facts, reject)) return false;
      break;
    case FieldName::Connection:
      return read_connection(value, facts, reject);
    default:
      return true;
  }
  if (facts.chunked && facts.content_length) {
    reject = {400, "The message has both Content-Length and Transfer-Encoding."};
    return false;
  }
  return true;
}

}  // namespace signalbox::http::detail
