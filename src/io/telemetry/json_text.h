// SPDX-License-Identifier: Apache-2.0
// Appends JSON strings and RFC 3339 times to the lines of our logs. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace signalbox::telemetry {

// `text` in quotes, escaped; a byte that is not UTF-8 becomes U+FFFD.
void append_json_string(std::string& out, std::string_view text);

// Appends a number of milliseconds with three decimals, as few digits as say it.
void append_millis(std::string& out, std::int64_t nanos);

// `2026-11-29T20:22:54.123Z`. Calendar work is done once a second; one per thread.
class UtcClockText {
 public:
  void append(std::string& out, std::int64_t unix_nanos);

 private:
  std::int64_t second_ = INT64_MIN;
  char text_[20] = {};  // `2026-11-29T20:22:54`, ended by 0
};

}  // namespace signalbox::telemetry
