// SPDX-License-Identifier: Apache-2.0
// The inner loop of both head parsers, inline: cutting lines and reading a field. Included by the
// parsers' sources alone.
#pragma once

#include <algorithm>

#include "io/http/head_parser.h"
#include "io/http/scan.h"

namespace signalbox::http::detail {

[[gnu::always_inline]] inline LineCutter::Cut LineCutter::next(std::string_view buffer, Span& line,
                                                              Reject& reject) {
  const std::size_t stop = std::min(room_, buffer.size());
  const char* const base = buffer.data();
  const char* const found = find_control(base + scanned_, base + stop);
  scanned_ = static_cast<std::size_t>(found - base);
  if (scanned_ < stop && *found != '\r') return stopped(*found, reject);
  if (scanned_ + 1 >= stop) return stop == room_ ? out_of_room(reject) : Cut::NeedMore;
  if (found[1] != '\n') return stopped('\r', reject);
  line = {static_cast<std::uint32_t>(line_start_),
          static_cast<std::uint32_t>(scanned_ - line_start_)};
  line_start_ = scanned_ = scanned_ + 2;
  room_ = std::min(line_start_ + line_max_ + 2, head_max_);
  return Cut::Line;
}

// Notes a field that concerns framing or connection. False: `reject` is set.
bool read_framing(FieldName id, std::string_view value, int minor_version, FieldFacts& facts,
                  Reject& reject);

// Reads one field line into `fields`, and into `facts` what concerns framing; gives its name and
// value. False: `reject` is set.
inline bool read_field(std::string_view buffer, Span line, int minor_version, Fields& fields,
                       FieldFacts& facts, FieldName& id, std::string_view& value,
                       Reject& reject) {
  const char* const start = buffer.data() + line.offset;
  const char* const end = start + line.size;
  const char* const colon = find_colon(start, end);
  const std::string_view name(start, static_cast<std::size_t>(colon - start));
  id = field_name(name);
  // A listed name is made of token characters; only others need the look at each.
  if (id == FieldName::Other && (name.empty() || !all(kToken, name))) {
    reject = {400, "A field name is empty or holds a character that it may not."};
    return false;
  }
  if (colon == end) {
    reject = {400, "A field line has no colon."};
    return false;
  }
  value = trim_blanks({colon + 1, static_cast<std::size_t>(end - colon - 1)});
  fields.add(id, line.offset, name.size(),
             static_cast<std::size_t>(value.data() - buffer.data()), value.size());
  switch (id) {
    case FieldName::ContentLength:
    case FieldName::TransferEncoding:
    case FieldName::Connection:
      return read_framing(id, value, minor_version, facts, reject);
    default:
      return true;
  }
}

}  // namespace signalbox::http::detail
