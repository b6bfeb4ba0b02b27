// SPDX-License-Identifier: Apache-2.0
// Runs of plain bytes are copied at once; the calendar is that of std::chrono.
#include "io/telemetry/json_text.h"

#include <charconv>
#include <chrono>
#include <cstring>

#include "io/telemetry/utf8.h"

namespace signalbox::telemetry {
namespace {

constexpr char kHex[] = "0123456789abcdef";

void append_special(std::string& out, unsigned char c) {
  switch (c) {
    case '"': out += "\\\""; return;
    case '\\': out += "\\\\"; return;
    case '\n': out += "\\n"; return;
    case '\r': out += "\\r"; return;
    case '\t': out += "\\t"; return;
    default: break;
  }
  out += "\\u00";
  out += kHex[c >> 4];
  out += kHex[c & 15];
}

void put2(char* at, unsigned value) {
  at[0] = static_cast<char>('0' + value / 10 % 10);
  at[1] = static_cast<char>('0' + value % 10);
}

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  std::size_t from = 0;
  std::size_t at = 0;
  while (at < text.size()) {
    auto c = static_cast<unsigned char>(text[at]);
    if (c >= 0x20 && c < 0x80 && c != '"' && c != '\\') {
      ++at;
      continue;
    }
    std::size_t size = c < 0x80 ? 0 : utf8_length(text.substr(at));
    if (size > 0) {
      at += size;
      continue;
    }
    out.append(text.substr(from, at - from));
    if (c < 0x80) append_special(out, c);
    else out += "\xEF\xBF\xBD";
    from = ++at;
  }
  out.append(text.substr(from)).append("\"");
}

void append_millis(std::string& out, std::int64_t nanos) {
  char text[32];
  std::int64_t micros = nanos / 1000;
  auto end = std::to_chars(text, text + sizeof text, micros / 1000).ptr;
  if (int rest = static_cast<int>(micros % 1000); rest > 0) {
    *end++ = '.';
    *end++ = static_cast<char>('0' + rest / 100);
    put2(end, static_cast<unsigned>(rest % 100));
    end += 2;
    while (end[-1] == '0') --end;
  }
  out.append(text, end);
}

void UtcClockText::append(std::string& out, std::int64_t unix_nanos) {
  using namespace std::chrono;
  std::int64_t second = unix_nanos / 1'000'000'000;
  if (second != second_) {
    second_ = second;
    sys_seconds time{seconds(second)};
    sys_days day = floor<days>(time);
    year_month_day date(day);
    hh_mm_ss clock(time - day);
    auto year = static_cast<unsigned>(static_cast<int>(date.year()));
    std::memcpy(text_, "0000-00-00T00:00:00", sizeof text_);
    put2(text_, year / 100);
    put2(text_ + 2, year);
    put2(text_ + 5, static_cast<unsigned>(date.month()));
    put2(text_ + 8, static_cast<unsigned>(date.day()));
    put2(text_ + 11, static_cast<unsigned>(clock.hours().count()));
    put2(text_ + 14, static_cast<unsigned>(clock.minutes().count()));
    put2(text_ + 17, static_cast<unsigned>(clock.seconds().count()));
  }
  auto millis = static_cast<unsigned>(unix_nanos / 1'000'000 % 1000);
  char tail[5] = {'.', static_cast<char>('0' + millis / 100), 0, 0, 'Z'};
  put2(tail + 2, millis % 100);
  out.append(text_, 19).append(tail, sizeof tail);
}

}  // namespace signalbox::telemetry
