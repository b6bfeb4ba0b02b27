// SPDX-License-Identifier: Apache-2.0
// What a message head says once it has been read whole. Every view points into the buffer that the
// parser was given; it holds until that buffer is freed, overwritten or moved. After a move (a
// string that grew, for example) rebase() with the new address makes all views right again.
#pragma once

#include <cstdint>
#include <string_view>

#include "io/http/chars.h"
#include "io/http/fields.h"
#include "io/http/target.h"

namespace signalbox::http {

// How the end of the body is known.
struct Framing {
  enum class Kind : std::uint8_t { None, Length, Chunked, UntilClose };
  Kind kind = Kind::None;
  std::uint64_t length = 0;  // bytes; Kind::Length only
  bool operator==(const Framing&) const = default;
};

// A part of the head by position, so that it survives a move of the buffer.
struct Span {
  std::uint32_t offset = 0;
  std::uint32_t size = 0;
};

struct MessageHead {
  Fields fields;
  Framing framing;
  int minor_version = 1;         // of HTTP/1.x: 0 or 1
  bool keep_alive = false;       // the sender will use this connection again
  bool nominates_fields = false;  // Connection lists more than "close" and "keep-alive"

  std::string_view view(Span s) const { return {fields.base() + s.offset, s.size}; }
  // start: the new address of the first byte of the buffer that was parsed.
  void rebase(const char* start) { fields.rebase(start); }
};

struct RequestHead : MessageHead {
  Method method = Method::Other;
  Target::Form form = Target::Form::Origin;
  bool expect_continue = false;  // the client waits for "100 Continue" before it sends the body

  std::string_view method_text() const { return view(method_span); }
  std::string_view target() const { return view(target_span); }
  // The one parsed target: routing and authorisation use these.
  std::string_view path() const { return path_span.size == 0 ? "/" : view(path_span); }
  std::string_view query() const { return view(query_span); }
  // Empty only for an HTTP/1.0 request without Host.
  std::string_view host() const { return fields.find(FieldName::Host).value_or(""); }

  Span method_span, target_span, path_span, query_span;  // the parser's
};

struct ResponseHead : MessageHead {
  int status = 0;  // 100-599

  std::string_view reason() const { return view(reason_span); }
  // A 1xx answer: another head follows. The parser's skip_interim() goes on to it.
  bool interim() const { return status < 200; }

  Span reason_span;
};

// Whether a field concerns this connection alone and is not passed on: the fixed set of RFC 9110
// section 7.6.1, and what the message's Connection field nominates. A nomination of a field on
// which framing, routing or authorisation rest (Host, Content-Length, Content-Type, Authorization,
// x-api-key, X-Forwarded-*, ...) counts for nothing.
bool is_hop_by_hop(const MessageHead& head, const Field& field);

// The elements of a comma-separated list, without blanks; empty elements are left out.
template <typename Function>
void for_each_element(std::string_view list, Function&& function) {
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    const std::string_view element = trim_blanks(list.substr(0, comma));
    if (!element.empty()) function(element);
    if (comma == std::string_view::npos) return;
    list.remove_prefix(comma + 1);
  }
}

}  // namespace signalbox::http
