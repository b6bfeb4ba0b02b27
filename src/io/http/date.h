// SPDX-License-Identifier: Apache-2.0
// The value of a Date field. Pure: the caller has the clock.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace signalbox::http {

// "Sun, 06 Nov 1994 08:49:37 GMT" (IMF-fixdate, RFC 9110 section 5.6.7). A server formats it once
// a second and copies it into each answer.
class HttpDate {
 public:
  // unix_seconds: since 1970-01-01 UTC; 0 to the end of the year 9999.
  explicit HttpDate(std::int64_t unix_seconds);
  std::string_view text() const { return {text_.data(), text_.size()}; }

 private:
  std::array<char, 29> text_;
};

}  // namespace signalbox::http
