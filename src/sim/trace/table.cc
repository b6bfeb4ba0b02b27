// SPDX-License-Identifier: Apache-2.0
// Splits lines and reads numbers.
#include "sim/trace/table.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace signalbox::trace {
namespace {

constexpr std::size_t kShown = 40;

std::string print(double value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  return std::string(text, end);
}

}  // namespace

std::string quoted(std::string_view text) {
  std::string out = "`";
  for (const char c : text.substr(0, kShown)) {
    const bool shown = static_cast<unsigned char>(c) >= 0x20 && c != 0x7F;
    out += shown ? c : '?';
  }
  return out + (text.size() > kShown ? "...`" : "`");
}

Error fault_at(std::string_view what, std::int64_t line, std::string_view message) {
  return invalid(std::string(what) + ", line " + std::to_string(line) + ": " +
                 std::string(message));
}

bool Lines::next(std::string_view& line) {
  if (rest_.empty()) return false;
  const std::size_t end = std::min(rest_.find('\n'), rest_.size());
  line = rest_.substr(0, end);
  rest_.remove_prefix(std::min(end + 1, rest_.size()));
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  ++number_;
  return true;
}

Table::Table(std::string_view text, std::string_view what,
             std::initializer_list<std::string_view> columns)
    : lines_(text), what_(what), names_(columns), places_(columns.size()) {
  read_header(columns);
}

void Table::read_header(std::initializer_list<std::string_view> columns) {
  std::string_view line;
  lines_.next(line);
  split(line);
  width_ = fields_.size();
  std::size_t wanted = 0;
  for (const std::string_view column : columns) {
    const auto found = std::find(fields_.begin(), fields_.end(), column);
    if (found == fields_.end()) {
      std::string all;
      for (const std::string_view name : columns) all += (all.empty() ? "" : ", ") + quoted(name);
      return fail("the header has no column " + quoted(column) +
                  "; write a first line that names " + all + ".");
    }
    places_[wanted++] = static_cast<std::size_t>(found - fields_.begin());
  }
}

// False when the line has another number of fields than the header.
bool Table::split(std::string_view line) {
  fields_.clear();
  while (true) {
    const std::size_t comma = line.find(',');
    fields_.push_back(line.substr(0, comma));
    if (comma == std::string_view::npos) break;
    line.remove_prefix(comma + 1);
  }
  return fields_.size() == width_;
}

bool Table::next() {
  std::string_view line;
  do {
    if (error_ || !lines_.next(line)) return false;
  } while (line.empty());
  if (split(line)) return true;
  fail("the line has " + std::to_string(fields_.size()) + " fields and the header " +
       std::to_string(width_) + "; give every column a value, or leave it empty between commas.");
  return false;
}

std::int64_t Table::integer(std::size_t column, Range range) {
  if (error_) return 0;
  const std::string_view field = text(column);
  std::int64_t value = 0;
  const auto [end, fault] = std::from_chars(field.data(), field.data() + field.size(), value);
  const auto number = static_cast<double>(value);
  if (fault == std::errc() && end == field.data() + field.size() && number >= range.low &&
      number <= range.high) {
    return value;
  }
  refuse(column, "a whole number", range);
  return 0;
}

double Table::real(std::size_t column, Range range) {
  if (error_) return 0;
  const std::string_view field = text(column);
  double value = 0;
  const auto [end, fault] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (fault == std::errc() && end == field.data() + field.size() && std::isfinite(value) &&
      value >= range.low && value <= range.high) {
    return value;
  }
  refuse(column, "a number", range);
  return 0;
}

void Table::refuse(std::size_t column, std::string_view wanted, Range range) {
  fail(quoted(names_[column]) + " is " + quoted(text(column)) + "; write " + std::string(wanted) +
       " from " + print(range.low) + " to " + print(range.high) + ".");
}

void Table::fail(std::string message) {
  if (!error_) error_ = fault_at(what_, std::max<std::int64_t>(1, lines_.number()), message);
}

}  // namespace signalbox::trace
