// SPDX-License-Identifier: Apache-2.0
// Splits a stream of server-sent events into whole events for a relay. Does no I/O; one scanner a
// stream. What lies whole in the input is never copied; an unfinished event is held, and joined
// once, when its end comes.
//
//   scanner.feed(input);                       // input stays valid until the views are used
//   while (auto event = scanner.next()) look_at(*event);
//   write(scanner.carried(), scanner.direct());   // all complete events of this input, in order
//
// Every byte comes out exactly once, in order: carried() + direct() of each feed, then tail().
// Events and their bytes do not depend on how the stream was split, unless one overflows.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace signalbox::http {

struct SseEvent {
  enum class Kind {
    Data,      // has a data line: clients dispatch it
    Silent,    // comments, other fields, or nothing but a blank line: clients dispatch nothing
    Fragment,  // part of an event too long to hold: pass the bytes on, unread
  };
  Kind kind = Kind::Silent;
  bool ends = true;        // false: a Fragment that more of the same event follows
  std::string_view bytes;  // as received, with the blank line that ends the event
  std::string_view type;   // value of the last `event:` line; empty when absent or a Fragment
  std::string_view data;   // value of the `data:` lines, joined with LF
};

class SseScanner {
 public:
  // tail_bytes_max: bytes of an unfinished event that are held; beyond them it passes through as
  // Fragments. An event that lies whole in one input may be of any size.
  explicit SseScanner(std::size_t tail_bytes_max) : tail_max_(tail_bytes_max) {}

  // The next bytes of the stream. next() must have given nullopt for those before.
  void feed(std::string_view input);
  // The stream is over; counts as a feed of nothing. An event whose last CR could have been half of
  // a CRLF is complete now.
  void finish();
  // The next event; its views hold until the next call of next() or feed(). nullopt: the input is
  // used up, and its unfinished end, if any, is held.
  std::optional<SseEvent> next();

  // The bytes of the events given since feed(): first those whose beginning was held from earlier
  // inputs (valid until the next feed()), then those inside the input itself.
  std::string_view carried() const { return carried_; }
  std::string_view direct() const { return direct_; }

  // The held beginning of an unfinished event. After finish() and the last next(), these bytes
  // belong to an event that clients never dispatch.
  std::string_view tail() const { return held_; }
  // Whether what was given out ends with a whole event, so that something may be put in there.
  bool between_events() const { return !passing_; }

 private:
  enum class LineEnd { None, Lf, CrLf, Cr };

  bool find_end();
  bool skip_start(const char*& p, const char* end);
  bool line_ended(LineEnd how);
  void note_line(const char* line_end);
  SseEvent complete_event();
  std::optional<SseEvent> hold_rest();
  SseEvent fragment(std::string_view bytes, bool ends);
  void parse(std::string_view bytes, SseEvent& event);
  void parse_line(std::string_view line, SseEvent& event);
  void extend_direct(std::string_view bytes);

  std::size_t tail_max_;
  std::string_view input_;
  std::size_t start_ = 0;  // of the current event in input_, or 0 when its beginning is held
  std::size_t pos_ = 0;    // first byte of input_ not yet scanned
  std::string held_;       // beginning of the current event, from earlier inputs
  std::string joined_;     // the event whose beginning had been held
  std::string scratch_;    // data of several lines
  std::string_view carried_, direct_;

  LineEnd last_end_ = LineEnd::None;  // of the previous line of this event
  bool line_empty_ = true;            // no byte of the current line seen yet
  bool pending_cr_ = false;           // the current line ended in CR; an LF may follow
  bool skip_lf_ = false;   // an LF here is the second half of the previous event's CRLF
  bool passing_ = false;   // inside an event that overflowed
  bool finished_ = false;
  int bom_seen_ = 0;       // bytes of a byte order mark at the start of the stream; 3: past it
  std::size_t lines_ = 0;  // lines of the current event
  std::size_t content_ = 0;       // where its first line begins, from the start of the event
  std::size_t first_line_ = 0;    // where its first line ends
};

}  // namespace signalbox::http
