// SPDX-License-Identifier: Apache-2.0
// Reads response heads. The engine that sends them is no more trusted than a client.
#include <cstring>

#include "io/http/head_lines.h"

namespace signalbox::http {

ResponseParser::ResponseParser(const Limits& limits, AnswerTo request)
    : limits_(limits), request_(request) {
  clear();
}

void ResponseParser::clear() {
  head_.fields.clear();
  head_.framing = {};
  head_.minor_version = 1;
  head_.keep_alive = head_.nominates_fields = false;
  head_.status = 0;
  head_.reason_span = {};
  reject_ = {};
  cutter_.reset(limits_);
  facts_ = {};
  progress_ = Progress::NeedMore;
  has_status_line_ = false;
}

void ResponseParser::reset(AnswerTo request) {
  request_ = request;
  interims_ = 0;
  clear();
}

void ResponseParser::skip_interim() {
  clear();
  if (++interims_ > limits_.interim_responses_max) fail("Too many interim (1xx) answers.");
}

bool ResponseParser::fail(std::string_view reason) {
  reject_ = {502, reason};
  progress_ = Progress::Error;
  return false;
}

// False when parsing is over, for good or ill.
inline bool ResponseParser::read_line(std::string_view buffer, Span line) {
  if (!has_status_line_) return read_status_line(buffer, line);
  if (line.size == 0) {
    if (finish()) progress_ = Progress::Complete;
    return false;
  }
  if (head_.fields.size() >= static_cast<std::size_t>(limits_.fields_max)) {
    return fail("The response head has too many fields.");
  }
  FieldName id;
  std::string_view value;
  return detail::read_field(buffer, line, head_.minor_version, head_.fields, facts_, id, value,
                            reject_) ||
         fail(reject_.reason);
}

Progress ResponseParser::parse(std::string_view buffer) {
  if (progress_ == Progress::Complete) head_.rebase(buffer.data());
  if (progress_ != Progress::NeedMore) return progress_;
  head_.rebase(buffer.data());
  for (;;) {
    const std::size_t start = cutter_.line_start();
    if (start < buffer.size() && is_blank(buffer[start])) {
      fail("A line of the response head begins with a blank; folding is obsolete.");
      return progress_;
    }
    Span line;
    switch (cutter_.next(buffer, line, reject_)) {
      case detail::LineCutter::Cut::NeedMore:
        return progress_;
      case detail::LineCutter::Cut::Bad:
        fail(reject_.reason);
        return progress_;
      case detail::LineCutter::Cut::Line:
        break;
    }
    if (!read_line(buffer, line)) return progress_;
  }
}

// HTTP/1.x SP 3DIGIT SP [ reason ], where the last blank may be missing: small servers that give no
// reason leave it out.
bool ResponseParser::read_status_line(std::string_view buffer, Span line) {
  const char* const p = buffer.data() + line.offset;
  if (line.size < 12 || std::memcmp(p, "HTTP/1.", 7) != 0 || (p[7] != '0' && p[7] != '1')) {
    return fail("The answer does not begin with an HTTP/1.0 or HTTP/1.1 status line.");
  }
  const bool more = line.size > 12;
  if (p[8] != ' ' || (more && p[12] != ' ') || p[9] < '1' || p[9] > '5' || !is(kDigit, p[10]) ||
      !is(kDigit, p[11])) {
    return fail("The status line holds no status between 100 and 599.");
  }
  head_.minor_version = p[7] - '0';
  head_.status = (p[9] - '0') * 100 + (p[10] - '0') * 10 + (p[11] - '0');
  if (more) head_.reason_span = {line.offset + 13, line.size - 13};
  return has_status_line_ = true;
}

bool ResponseParser::finish() {
  if (head_.status == 101) return fail("The engine switched protocols, which nobody asked for.");
  const bool no_content = head_.interim() || head_.status == 204;
  if (no_content && (facts_.chunked || facts_.content_length.value_or(0) > 0)) {
    return fail("An answer that has no body announces one.");
  }
  if (no_content || head_.status == 304 || request_ == AnswerTo::Head) {
    head_.framing = {};
  } else if (facts_.chunked) {
    head_.framing = {Framing::Kind::Chunked, 0};
  } else if (!facts_.content_length) {
    head_.framing = {Framing::Kind::UntilClose, 0};
  } else if (*facts_.content_length > 0) {
    head_.framing = {Framing::Kind::Length, *facts_.content_length};
  }
  head_.keep_alive = !facts_.close && (head_.minor_version == 1 || facts_.keep_alive) &&
                     head_.framing.kind != Framing::Kind::UntilClose;
  head_.nominates_fields = facts_.nominates_fields;
  return true;
}

}  // namespace signalbox::http
