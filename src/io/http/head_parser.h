// SPDX-License-Identifier: Apache-2.0
// Reads the heads of requests and of responses, incrementally and without copies. Used by one
// thread at a time; does no I/O. Each byte is looked at once, however the bytes arrive, and the
// verdict does not depend on how they were split.
//
// The caller appends what it reads to one contiguous buffer and calls parse() with all of it. The
// buffer may move between calls. After Complete, head_length() bytes are the head, the body begins
// behind them, and the views of head() point into the buffer of the last call. For the next message
// on the connection the caller drops head and body from the buffer and calls reset().
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "io/http/head.h"
#include "io/http/limits.h"
#include "io/http/reject.h"

namespace signalbox::http {

enum class Progress {
  NeedMore,  // all is well so far; call again with more bytes behind the same ones
  Complete,  // head() is valid
  Error,     // error() says why; stays so until reset()
};

namespace detail {

// Cuts a growing buffer into lines that end in CRLF and hold no other control than tab. Its steps
// are inline in head_lines.h, for the parsers alone.
class LineCutter {
 public:
  enum class Cut { NeedMore, Line, Bad };

  void reset(const Limits& limits);
  // Line: `line` is the next one without its CRLF. Bad: `reject` is set.
  Cut next(std::string_view buffer, Span& line, Reject& reject);
  // Where the line begins that is being read; after the last line: bytes of the head.
  std::size_t line_start() const { return line_start_; }

 private:
  Cut stopped(char found, Reject& reject) const;
  Cut out_of_room(Reject& reject) const;

  std::size_t line_start_ = 0;
  std::size_t scanned_ = 0;  // no line end before this
  std::size_t room_ = 0;     // the current line and its CRLF end at or before this
  std::size_t head_max_ = 0;
  std::size_t line_max_ = 0;
};

// What the fields say about framing and connection, gathered one by one.
struct FieldFacts {
  std::optional<std::uint64_t> content_length;
  bool chunked = false;
  bool close = false;
  bool keep_alive = false;
  bool nominates_fields = false;
};

}  // namespace detail

class RequestParser {
 public:
  explicit RequestParser(const Limits& limits);

  // buffer: the same bytes as before and possibly more. One empty line before the request line is
  // skipped (RFC 9112 section 2.2) and counts into head_length().
  Progress parse(std::string_view buffer);

  // Bytes of the head, blank line included. Only after Complete.
  std::size_t head_length() const { return cutter_.line_start(); }
  RequestHead& head() { return head_; }
  const RequestHead& head() const { return head_; }
  // status 400, 414, 417, 431, 501 or 505. Only after Error.
  const Reject& error() const { return reject_; }
  // Whether any byte of a next request has been seen: tells an idle connection from a slow head.
  bool started() const { return started_; }

  void reset();

 private:
  bool read_line(std::string_view buffer, Span line);
  bool read_request_line(std::string_view buffer, Span line);
  bool check_field(FieldName id, std::string_view value);
  bool finish(std::string_view buffer);
  bool fail(int status, std::string_view reason);

  Limits limits_;
  RequestHead head_;
  Reject reject_;
  detail::LineCutter cutter_;
  detail::FieldFacts facts_;
  Progress progress_ = Progress::NeedMore;
  bool started_ = false;
  bool skipped_line_ = false;
  bool has_request_line_ = false;
  bool has_host_ = false;
};

// What was asked decides whether an answer has a body.
enum class AnswerTo { Head, Other };

class ResponseParser {
 public:
  explicit ResponseParser(const Limits& limits, AnswerTo request = AnswerTo::Other);

  // As RequestParser::parse. An interim answer (1xx) is Complete as well: see skip_interim().
  Progress parse(std::string_view buffer);

  std::size_t head_length() const { return cutter_.line_start(); }
  ResponseHead& head() { return head_; }
  const ResponseHead& head() const { return head_; }
  // status 502. Only after Error.
  const Reject& error() const { return reject_; }

  // For the next answer on the connection.
  void reset(AnswerTo request);
  // After an interim answer, which the caller has dropped from its buffer: goes on to the next head
  // of the same exchange. More than interim_responses_max of them make the next parse() an Error.
  void skip_interim();

 private:
  bool read_line(std::string_view buffer, Span line);
  bool read_status_line(std::string_view buffer, Span line);
  bool finish();
  bool fail(std::string_view reason);
  void clear();

  Limits limits_;
  ResponseHead head_;
  Reject reject_;
  detail::LineCutter cutter_;
  detail::FieldFacts facts_;
  Progress progress_ = Progress::NeedMore;
  AnswerTo request_;
  int interims_ = 0;
  bool has_status_line_ = false;
};

}  // namespace signalbox::http
