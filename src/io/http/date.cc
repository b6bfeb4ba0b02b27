// SPDX-License-Identifier: Apache-2.0
// Civil time from a count of seconds, by the calendar of the C++20 library, without a time zone
// and without locale.
#include "io/http/date.h"

#include <algorithm>
#include <chrono>

#include "base/check.h"

namespace signalbox::http {
namespace {

constexpr std::int64_t kEndOf9999 = 253402300799;

void put_digits(char* to, int digits, unsigned value) {
  for (int i = digits - 1; i >= 0; --i, value /= 10) to[i] = static_cast<char>('0' + value % 10);
}

}  // namespace

HttpDate::HttpDate(std::int64_t unix_seconds) {
  CHECK(unix_seconds >= 0 && unix_seconds <= kEndOf9999);
  constexpr std::string_view kForm = "ddd, 00 mmm 0000 00:00:00 GMT";
  constexpr std::string_view kDays = "SunMonTueWedThuFriSat";
  constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";
  static_assert(kForm.size() == 29);
  const std::chrono::sys_days days{std::chrono::days{unix_seconds / 86400}};
  const std::chrono::year_month_day date{days};
  const auto second = static_cast<unsigned>(unix_seconds % 86400);
  const unsigned month = static_cast<unsigned>(date.month()) - 1;
  char* const to = text_.data();
  std::copy(kForm.begin(), kForm.end(), to);
  std::copy_n(kDays.data() + 3 * std::chrono::weekday{days}.c_encoding(), 3, to);
  put_digits(to + 5, 2, static_cast<unsigned>(date.day()));
  std::copy_n(kMonths.data() + 3 * month, 3, to + 8);
  put_digits(to + 12, 4, static_cast<unsigned>(static_cast<int>(date.year())));
  put_digits(to + 17, 2, second / 3600);
  put_digits(to + 20, 2, second / 60 % 60);
  put_digits(to + 23, 2, second % 60);
}

}  // namespace signalbox::http
