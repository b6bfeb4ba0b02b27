// SPDX-License-Identifier: Apache-2.0
// Event stream interpretation of the WHATWG HTML standard, section 9.2.6. Lines end in LF, CRLF or
// CR. A blank line whose CR is the last byte of the input waits for the next byte, which may be its
// LF, unless the line before ended in a bare CR: then the stream uses CR, and waiting would delay
// each event by one.
#include "io/http/sse_scanner.h"

#include <cstring>

#include "base/check.h"
#include "io/http/scan.h"

namespace signalbox::http {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

bool starts_with(std::string_view line, std::string_view prefix) {
  return line.size() >= prefix.size() &&
         std::memcmp(line.data(), prefix.data(), prefix.size()) == 0;
}

std::string_view without_space(std::string_view value) {
  if (!value.empty() && value.front() == ' ') value.remove_prefix(1);
  return value;
}

}  // namespace

void SseScanner::feed(std::string_view input) {
  CHECK(start_ == input_.size());
  input_ = input;
  start_ = pos_ = 0;
  carried_ = direct_ = {};
}

void SseScanner::finish() {
  feed({});
  finished_ = true;
}

std::optional<SseEvent> SseScanner::next() {
  if (find_end()) return complete_event();
  return hold_rest();
}

// Scans to the end of the current event: true, and pos_ is behind it. False: the input ends first.
bool SseScanner::find_end() {
  const char* const base = input_.data();
  const char* const end = base + input_.size();
  const char* p = base + pos_;
  if (!skip_start(p, end)) {
    pos_ = input_.size();
    return false;
  }
  bool found = false;
  while (!found) {
    if (pending_cr_) {
      if (p == end && !finished_) break;
      pending_cr_ = false;
      const bool lf = p != end && *p == '\n';
      p += lf ? 1 : 0;
      found = line_ended(lf ? LineEnd::CrLf : LineEnd::Cr);
      continue;
    }
    const char* const stop = p != end && *p == '\n' ? p : find_line_end(p, end);
    line_empty_ = line_empty_ && stop == p;
    p = stop;
    if (p == end) break;
    if (!line_empty_) note_line(p);
    if (*p++ == '\n') {
      found = line_ended(LineEnd::Lf);
    } else if (line_empty_ && last_end_ == LineEnd::Cr) {
      found = skip_lf_ = line_ended(LineEnd::Cr);
    } else {
      pending_cr_ = true;
    }
  }
  pos_ = static_cast<std::size_t>(p - base);
  return found;
}

// Steps over the byte order mark of the stream, and over the LF that belongs to the event before.
// False when the input ends within.
bool SseScanner::skip_start(const char*& p, const char* end) {
  if (skip_lf_ && p != end) {
    skip_lf_ = false;
    if (*p == '\n') {
      ++p;
      content_ = 1;
    }
  }
  while (bom_seen_ < 3 && p != end) {
    if (*p != kByteOrderMark[static_cast<std::size_t>(bom_seen_)]) {
      line_empty_ = bom_seen_ == 0;  // what looked like the mark is text
      bom_seen_ = 3;
      return true;
    }
    ++p;
    if (++bom_seen_ == 3) content_ = 3;
  }
  return bom_seen_ == 3 || p != end;
}

void SseScanner::note_line(const char* line_end) {
  if (lines_++ != 0) return;
  first_line_ = held_.size() + static_cast<std::size_t>(line_end - input_.data()) - start_;
}

// True when the line that ended is the blank one that ends the event.
bool SseScanner::line_ended(LineEnd how) {
  if (line_empty_) return true;
  line_empty_ = true;
  last_end_ = how;
  return false;
}

SseEvent SseScanner::complete_event() {
  const std::string_view bytes = input_.substr(start_, pos_ - start_);
  SseEvent event;
  start_ = pos_;
  if (passing_) {
    event = fragment(bytes, true);
  } else if (held_.empty()) {
    event.bytes = bytes;
    extend_direct(bytes);
  } else {
    held_ += bytes;
    joined_.swap(held_);
    held_.clear();
    event.bytes = carried_ = joined_;
  }
  if (!passing_) parse(event.bytes, event);
  passing_ = false;
  last_end_ = LineEnd::None;
  line_empty_ = true;
  lines_ = content_ = 0;
  return event;
}

// The input holds no further end of an event: keeps the rest, or passes it on when it is too long.
std::optional<SseEvent> SseScanner::hold_rest() {
  const std::string_view rest = input_.substr(start_);
  if (!passing_ && held_.size() + rest.size() > tail_max_) {
    passing_ = true;
    if (!held_.empty()) {
      joined_.swap(held_);
      held_.clear();
      carried_ = joined_;
      return SseEvent{SseEvent::Kind::Fragment, false, carried_, {}, {}};
    }
  }
  start_ = input_.size();
  if (rest.empty()) return std::nullopt;
  if (passing_) return fragment(rest, false);
  held_ += rest;
  return std::nullopt;
}

SseEvent SseScanner::fragment(std::string_view bytes, bool ends) {
  extend_direct(bytes);
  return {SseEvent::Kind::Fragment, ends, bytes, {}, {}};
}

void SseScanner::extend_direct(std::string_view bytes) {
  direct_ = direct_.empty() ? bytes
                            : std::string_view(direct_.data(), direct_.size() + bytes.size());
}

void SseScanner::parse(std::string_view bytes, SseEvent& event) {
  if (lines_ == 0) return;
  if (lines_ == 1) {
    parse_line(bytes.substr(content_, first_line_ - content_), event);
    return;
  }
  const char* p = bytes.data() + content_;
  const char* const end = bytes.data() + bytes.size();
  while (p != end) {
    const char* const stop = find_line_end(p, end);
    if (stop != p) parse_line({p, static_cast<std::size_t>(stop - p)}, event);
    p = stop == end ? end : stop + 1;
  }
}

void SseScanner::parse_line(std::string_view line, SseEvent& event) {
  std::string_view value;
  if (starts_with(line, "data:")) {
    value = without_space(line.substr(5));
  } else if (starts_with(line, "event:")) {
    event.type = without_space(line.substr(6));
    return;
  } else if (line == "event") {
    event.type = {};
    return;
  } else if (line != "data") {
    return;  // a comment, id, retry, or a field that nobody knows
  }
  if (event.kind != SseEvent::Kind::Data) {
    event.kind = SseEvent::Kind::Data;
    event.data = value;
    return;
  }
  if (event.data.data() != scratch_.data()) scratch_ = event.data;
  scratch_ += '\n';
  scratch_ += value;
  event.data = scratch_;
}

}  // namespace signalbox::http
