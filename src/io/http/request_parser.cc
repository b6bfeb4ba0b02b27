// SPDX-License-Identifier: Apache-2.0
// Reads request heads.
#include <cstring>

#include "io/http/head_lines.h"

namespace signalbox::http {
namespace {

enum class Version { Http10, Http11, Unsupported, Malformed };

Version read_version(std::string_view text) {
  if (text.size() != 8 || std::memcmp(text.data(), "HTTP/", 5) != 0 || text[6] != '.' ||
      !is(kDigit, text[5]) || !is(kDigit, text[7])) {
    return Version::Malformed;
  }
  if (text[5] == '1' && text[7] == '1') return Version::Http11;
  if (text[5] == '1' && text[7] == '0') return Version::Http10;
  return text[5] == '0' ? Version::Malformed : Version::Unsupported;
}

Span span_of(std::string_view part, std::string_view buffer) {
  return {static_cast<std::uint32_t>(part.data() - buffer.data()),
          static_cast<std::uint32_t>(part.size())};
}

}  // namespace

RequestParser::RequestParser(const Limits& limits) : limits_(limits) { reset(); }

void RequestParser::reset() {
  head_.fields.clear();
  head_.framing = {};
  head_.minor_version = 1;
  head_.keep_alive = head_.nominates_fields = head_.expect_continue = false;
  head_.method = Method::Other;
  head_.method_span = head_.target_span = head_.path_span = head_.query_span = {};
  reject_ = {};
  cutter_.reset(limits_);
  facts_ = {};
  progress_ = Progress::NeedMore;
  started_ = skipped_line_ = has_request_line_ = has_host_ = false;
}

bool RequestParser::fail(int status, std::string_view reason) {
  reject_ = {status, reason};
  progress_ = Progress::Error;
  return false;
}

// False when parsing is over, for good or ill.
inline bool RequestParser::read_line(std::string_view buffer, Span line) {
  if (!has_request_line_) {
    if (line.size != 0) return read_request_line(buffer, line);
    if (skipped_line_) return fail(400, "Empty lines stand where a request line should.");
    return skipped_line_ = true;
  }
  if (line.size == 0) {
    if (finish(buffer)) progress_ = Progress::Complete;
    return false;
  }
  if (head_.fields.size() >= static_cast<std::size_t>(limits_.fields_max)) {
    return fail(431, "The message head has too many fields.");
  }
  FieldName id;
  std::string_view value;
  if (!detail::read_field(buffer, line, head_.minor_version, head_.fields, facts_, id, value,
                          reject_)) {
    progress_ = Progress::Error;
    return false;
  }
  return (id != FieldName::Host && id != FieldName::Expect) || check_field(id, value);
}

Progress RequestParser::parse(std::string_view buffer) {
  if (progress_ == Progress::Complete) head_.rebase(buffer.data());
  if (progress_ != Progress::NeedMore) return progress_;
  started_ = !buffer.empty();
  head_.rebase(buffer.data());
  for (;;) {
    const std::size_t start = cutter_.line_start();
    // Wrong from its first byte on: no need to wait for the rest of the line.
    if (start < buffer.size() && is_blank(buffer[start])) {
      fail(400, has_request_line_ ? "A field line begins with a blank; folding is obsolete."
                                  : "The request line begins with a blank.");
      return progress_;
    }
    Span line;
    switch (cutter_.next(buffer, line, reject_)) {
      case detail::LineCutter::Cut::NeedMore:
        return progress_;
      case detail::LineCutter::Cut::Bad:
        return progress_ = Progress::Error;
      case detail::LineCutter::Cut::Line:
        break;
    }
    if (!read_line(buffer, line)) return progress_;
  }
}

bool RequestParser::read_request_line(std::string_view buffer, Span line) {
  const char* const start = buffer.data() + line.offset;
  const char* const end = start + line.size;
  const char* p = start;
  while (p != end && is(kUpper, *p)) ++p;
  if (p == start || p == end || *p != ' ') {
    return fail(400, "The request line does not begin with a method and one space.");
  }
  const std::string_view method(start, static_cast<std::size_t>(p - start));
  const char* const target = ++p;
  while (p != end && is(kTarget, *p)) ++p;
  if (p == target) return fail(400, "The request target is empty or begins with a bad character.");
  if (p == end) return fail(400, "The request line has no HTTP version; HTTP/0.9 is not spoken.");
  if (*p != ' ') return fail(400, "The request target holds a character that a URL may not.");
  switch (read_version({p + 1, static_cast<std::size_t>(end - p - 1)})) {
    case Version::Http11:
      head_.minor_version = 1;
      break;
    case Version::Http10:
      head_.minor_version = 0;
      break;
    case Version::Unsupported:
      return fail(505, "This is neither HTTP/1.0 nor HTTP/1.1.");
    case Version::Malformed:
      return fail(400, "The request line does not end in one space and an HTTP version.");
  }
  head_.method = method_of(method);
  head_.method_span = span_of(method, buffer);
  head_.target_span = span_of({target, static_cast<std::size_t>(p - target)}, buffer);
  return has_request_line_ = true;
}

// Host or Expect.
bool RequestParser::check_field(FieldName id, std::string_view value) {
  if (id == FieldName::Host) {
    if (has_host_) return fail(400, "The request has more than one Host.");
    if (!is_host(value)) return fail(400, "Host is no host name with an optional port.");
    has_host_ = true;
  } else {
    if (!equals_ignoring_case(value, "100-continue")) {
      return fail(417, "The only expectation met here is \"100-continue\".");
    }
    head_.expect_continue = head_.minor_version == 1;
  }
  return true;
}

bool RequestParser::finish(std::string_view buffer) {
  if (!has_host_ && head_.minor_version == 1) return fail(400, "The request has no Host.");
  const auto target = detail::split_target(head_.method, head_.target(), head_.host());
  if (!target) return fail(target.error().status, target.error().reason);
  head_.form = target->form;
  // An absolute URL without a path has the path "/", which is nowhere in the buffer.
  const bool rooted = head_.form == Target::Form::Absolute && target->path == "/";
  if (!rooted) head_.path_span = span_of(target->path, buffer);
  if (!target->query.empty()) head_.query_span = span_of(target->query, buffer);
  if (facts_.chunked) {
    head_.framing = {Framing::Kind::Chunked, 0};
  } else if (facts_.content_length.value_or(0) > 0) {
    head_.framing = {Framing::Kind::Length, *facts_.content_length};
  }
  head_.keep_alive = !facts_.close && (head_.minor_version == 1 || facts_.keep_alive);
  head_.nominates_fields = facts_.nominates_fields;
  return true;
}

}  // namespace signalbox::http
