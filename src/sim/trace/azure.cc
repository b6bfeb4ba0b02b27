// SPDX-License-Identifier: Apache-2.0
// Reads rows of times and lengths, in one of two forms.
#include "sim/trace/azure.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <optional>
#include <utility>

#include "sim/trace/table.h"

namespace signalbox::trace {
namespace {

constexpr std::string_view kWhat = "Azure trace";
constexpr Duration kLastsMax = std::chrono::seconds(1'000'000'000);  // of t_ms, too

enum Column { Time, Input, Output };

// The number at the front, which `end` must follow if it is not 0; both are taken away.
template <typename Number>
bool take(std::string_view& text, char end, Number& number) {
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
  if (end == 0) return text.empty();
  if (text.empty() || text.front() != end) return false;
  text.remove_prefix(1);
  return true;
}

// `YYYY-MM-DD HH:MM:SS[.fraction]`, since 1970.
std::optional<Duration> read_time(std::string_view text) {
  int year = 0;
  unsigned month = 0, day = 0, hour = 0, minute = 0;
  double second = 0;
  const bool read = take(text, '-', year) && take(text, '-', month) && take(text, ' ', day) &&
                    take(text, ':', hour) && take(text, ':', minute) && take(text, 0, second);
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(month),
                                         std::chrono::day(day)};
  if (!read || !date.ok() || year < 1970 || year > 2200) return std::nullopt;
  if (hour > 23 || minute > 59 || !(second >= 0 && second < 61)) return std::nullopt;
  const Duration days = std::chrono::sys_days(date).time_since_epoch();
  return days + std::chrono::hours(hour) + std::chrono::minutes(minute) + from_seconds(second);
}

Duration time_of(Table& table, bool published) {
  if (!published) return from_seconds(table.real(Time, {0, 1e12}) / 1e3);
  if (const auto time = read_time(table.text(Time))) return *time;
  table.fail("`TIMESTAMP` is " + quoted(table.text(Time)) +
             "; write it as `2023-11-16 18:17:03.9799600`.");
  return {};
}

}  // namespace

Result<Trace> read_azure(std::string_view text) {
  const bool published = text.substr(0, text.find('\n')).find("TIMESTAMP") != text.npos;
  Table table = published
                    ? Table(text, kWhat, {"TIMESTAMP", "ContextTokens", "GeneratedTokens"})
                    : Table(text, kWhat, {"t_ms", "input_tokens", "output_tokens"});
  Trace trace;
  while (table.next()) {
    Call call;
    call.at = time_of(table, published);
    call.prompt_tokens = table.integer(Input, {1, kTokensMax});
    call.output_tokens = std::max<std::int64_t>(1, table.integer(Output, {0, kTokensMax}));
    call.last = static_cast<std::int32_t>(trace.calls.size());
    call.answer = mixed(4, trace.calls.size());
    trace.pieces.push_back({-1, mixed(3, trace.calls.size()), call.prompt_tokens, false});
    trace.calls.push_back(call);
  }
  if (!table.error() && trace.calls.empty()) {
    table.fail("there is no request; write one a line under the header.");
  }
  if (table.error()) return *table.error();
  sort_by_time(trace.calls);
  const Duration start = published ? trace.calls.front().at : Duration::zero();
  for (Call& call : trace.calls) call.at -= start;
  trace.lasts = trace.calls.back().at;
  if (trace.lasts > kLastsMax) {
    return invalid(std::string(kWhat) + ": its first and its last request are more than 31 years "
                   "apart; a `TIMESTAMP` is wrong.");
  }
  return trace;
}

}  // namespace signalbox::trace
