// SPDX-License-Identifier: Apache-2.0
// Reads and writes durations and sizes in integer arithmetic, so that nothing is rounded.
#include "base/units.h"

#include <array>
#include <cstdint>
#include <limits>
#include <optional>

namespace signalbox {
namespace {

__extension__ using Wide = __int128;

struct Unit {
  std::string_view name;
  std::int64_t size;
};

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::array<Unit, 7> kDurationUnits{{{"d", 86'400 * kSecond},
                                              {"h", 3'600 * kSecond},
                                              {"m", 60 * kSecond},
                                              {"s", kSecond},
                                              {"ms", 1'000'000},
                                              {"us", 1'000},
                                              {"ns", 1}}};
constexpr std::array<Unit, 9> kByteUnits{{{"TiB", std::int64_t{1} << 40},
                                          {"TB", 1'000'000'000'000},
                                          {"GiB", std::int64_t{1} << 30},
                                          {"GB", 1'000'000'000},
                                          {"MiB", std::int64_t{1} << 20},
                                          {"MB", 1'000'000},
                                          {"KiB", std::int64_t{1} << 10},
                                          {"kB", 1'000},
                                          {"B", 1}}};
constexpr std::string_view kDurationHelp = "write a duration like `30s`, `250ms` or `1m30s`";
constexpr std::string_view kBytesHelp = "write a size like `8MiB`, `64KiB`, `1GB` or `512B`";
constexpr int kDecimalsMax = 15;

Error fault(std::string_view text, std::string_view what, std::string_view help) {
  std::string message = "`";
  message.append(text.substr(0, 40)).append(text.size() > 40 ? "...` " : "` ");
  message.append(what).append("; ").append(help).append(".");
  return invalid(std::move(message));
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// A decimal number as written: value = digits / 10^decimals.
struct Number {
  Wide digits = 0;
  int decimals = 0;
  bool has_point = false;
};

// Takes a number off the front of `rest`; nothing when there is none or it has too many digits.
std::optional<Number> take_number(std::string_view& rest) {
  Number number;
  std::size_t i = 0;
  for (; i < rest.size() && (is_digit(rest[i]) || (rest[i] == '.' && !number.has_point)); ++i) {
    if (rest[i] == '.') {
      number.has_point = true;
      continue;
    }
    number.digits = number.digits * 10 + (rest[i] - '0');
    if (number.has_point) ++number.decimals;
    if (i > 34 || number.decimals > kDecimalsMax) return std::nullopt;
  }
  const bool bare_point = number.has_point && (number.decimals == 0 || rest[0] == '.');
  if (i == 0 || bare_point) return std::nullopt;
  rest.remove_prefix(i);
  return number;
}

std::string_view take_unit(std::string_view& rest) {
  std::size_t i = 0;
  while (i < rest.size() && !is_digit(rest[i]) && rest[i] != '.') ++i;
  const std::string_view unit = rest.substr(0, i);
  rest.remove_prefix(i);
  return unit;
}

enum class Scaled { Exact, Inexact, TooLarge };

// number × size as a whole number.
Scaled scale(const Number& number, std::int64_t size, std::int64_t& out) {
  Wide divisor = 1;
  for (int i = 0; i < number.decimals; ++i) divisor *= 10;
  // digits < 10^35 could overflow when multiplied; nothing sensible is beyond 10^19 × divisor.
  if (number.digits / divisor > std::numeric_limits<std::int64_t>::max()) return Scaled::TooLarge;
  const Wide whole = (number.digits / divisor) * size;
  const Wide part = (number.digits % divisor) * size;
  const Wide value = whole + part / divisor;
  if (value > std::numeric_limits<std::int64_t>::max()) return Scaled::TooLarge;
  out = static_cast<std::int64_t>(value);
  return part % divisor == 0 ? Scaled::Exact : Scaled::Inexact;
}

template <std::size_t N>
std::size_t index_of(const std::array<Unit, N>& units, std::string_view name) {
  std::size_t i = 0;
  while (i < N && units[i].name != name) ++i;
  return i;
}

std::string unknown_unit(std::string_view unit, std::string_view known) {
  std::string what = "has the unknown unit `";
  what.append(unit.substr(0, 16)).append("` (units are ").append(known).append(")");
  return what;
}

// Drops the zeros at the end of the decimals: 1.250000000 -> 1.25, 3.000 -> 3.
std::string decimal(std::int64_t value, std::int64_t unit) {
  std::string text = std::to_string(value / unit);
  std::int64_t rest = value % unit;
  if (rest == 0) return text;
  text.push_back('.');
  while (rest != 0) {
    unit /= 10;
    text.push_back(static_cast<char>('0' + rest / unit));
    rest %= unit;
  }
  return text;
}

std::string format_magnitude(std::int64_t ns) {
  if (ns == 0) return "0s";
  if (ns < 1'000) return std::to_string(ns) + "ns";
  if (ns < 1'000'000) return decimal(ns, 1'000) + "us";
  if (ns < kSecond) return decimal(ns, 1'000'000) + "ms";
  std::string text;
  for (std::size_t i = 0; i < 3; ++i) {
    const Unit& unit = kDurationUnits[i];
    if (ns >= unit.size) text.append(std::to_string(ns / unit.size)).append(unit.name);
    ns %= unit.size;
  }
  if (ns > 0) text.append(decimal(ns, kSecond)).append("s");
  return text;
}

}  // namespace

Result<Duration> parse_duration(std::string_view text) {
  if (text == "0") return Duration::zero();
  if (text.empty()) return fault(text, "is empty", kDurationHelp);
  if (text.front() == '-') return fault(text, "is negative", kDurationHelp);
  std::string_view rest = text;
  std::int64_t total = 0;
  std::size_t next_unit = 0;  // units before this one have passed
  while (!rest.empty()) {
    const auto number = take_number(rest);
    if (!number) return fault(text, "is not a duration", kDurationHelp);
    const std::string_view unit = take_unit(rest);
    if (unit.empty()) return fault(text, "has a number without a unit", kDurationHelp);
    const std::size_t i = index_of(kDurationUnits, unit);
    if (i == kDurationUnits.size()) {
      return fault(text, unknown_unit(unit, "d, h, m, s, ms, us, ns"), kDurationHelp);
    }
    if (i < next_unit) {
      return fault(text, "names its units twice or out of order", kDurationHelp);
    }
    if (number->has_point && !rest.empty()) {
      return fault(text, "has decimals before its last unit", kDurationHelp);
    }
    next_unit = i + 1;
    std::int64_t part = 0;
    const Scaled scaled = scale(*number, kDurationUnits[i].size, part);
    if (scaled == Scaled::TooLarge || part > std::numeric_limits<std::int64_t>::max() - total) {
      return fault(text, "is longer than 292 years", kDurationHelp);
    }
    if (scaled == Scaled::Inexact) return fault(text, "is finer than 1ns", kDurationHelp);
    total += part;
  }
  return Duration(total);
}

Result<Bytes> parse_bytes(std::string_view text) {
  if (text == "0") return Bytes{0};
  if (text.empty()) return fault(text, "is empty", kBytesHelp);
  if (text.front() == '-') return fault(text, "is negative", kBytesHelp);
  std::string_view rest = text;
  const auto number = take_number(rest);
  if (!number) return fault(text, "is not a size", kBytesHelp);
  if (rest.empty()) return fault(text, "has no unit", kBytesHelp);
  const std::size_t i = index_of(kByteUnits, rest);
  if (i == kByteUnits.size()) {
    return fault(text, unknown_unit(rest, "B, KiB, MiB, GiB, TiB, kB, MB, GB, TB"), kBytesHelp);
  }
  std::int64_t value = 0;
  switch (scale(*number, kByteUnits[i].size, value)) {
    case Scaled::Exact: return Bytes{value};
    case Scaled::Inexact: return fault(text, "is not a whole number of bytes", kBytesHelp);
    case Scaled::TooLarge: break;
  }
  return fault(text, "is larger than 8 EiB", kBytesHelp);
}

std::string format_duration(Duration duration) {
  const std::int64_t ns = duration.count();
  if (ns >= 0) return format_magnitude(ns);
  // The most negative count has no positive twin; one nanosecond in 292 years is dropped.
  const bool lowest = ns == std::numeric_limits<std::int64_t>::min();
  return "-" + format_magnitude(lowest ? std::numeric_limits<std::int64_t>::max() : -ns);
}

std::string format_bytes(Bytes bytes) {
  std::string best = std::to_string(bytes.value) + "B";
  if (bytes.value == 0) return best;
  for (const Unit& unit : kByteUnits) {
    if (bytes.value % unit.size != 0) continue;
    std::string text = std::to_string(bytes.value / unit.size).append(unit.name);
    if (text.size() < best.size()) best = std::move(text);
  }
  return best;
}

}  // namespace signalbox
