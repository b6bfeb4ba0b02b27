// SPDX-License-Identifier: Apache-2.0
// Reads comma-separated text with a header line, row by row. The first fault ends the reading and
// says line, column and cure; values read after it are 0 or empty. No quotes: no trace has any. The
// text must outlive the reader. Pure.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/describe.h"
#include "base/result.h"

namespace signalbox::trace {

// Lines of a text with their numbers, from 1; a carriage return at the end is no part of a line, a
// byte order mark at the start none of the text.
class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {
    if (rest_.substr(0, 3) == "\xEF\xBB\xBF") rest_.remove_prefix(3);
  }
  bool next(std::string_view& line);
  std::int64_t number() const { return number_; }

 private:
  std::string_view rest_;
  std::int64_t number_ = 0;
};

class Table {
 public:
  // `what` names the text in errors; `columns` must all be there, in any order, among others.
  Table(std::string_view text, std::string_view what,
        std::initializer_list<std::string_view> columns);

  // To the next row; empty lines are skipped. False at the end and after a fault.
  bool next();

  // Fields of the present row, by the column's place in `columns`.
  std::string_view text(std::size_t column) const { return fields_[places_[column]]; }
  bool empty(std::size_t column) const { return text(column).empty(); }
  std::int64_t integer(std::size_t column, Range range);
  double real(std::size_t column, Range range);

  // Ends the reading: `message` is a full sentence about the present row.
  void fail(std::string message);
  // Set after a fault.
  const std::optional<Error>& error() const { return error_; }

 private:
  void read_header(std::initializer_list<std::string_view> columns);
  bool split(std::string_view line);
  void refuse(std::size_t column, std::string_view wanted, Range range);

  Lines lines_;
  std::string what_;
  std::vector<std::string_view> names_;   // of `columns`
  std::vector<std::size_t> places_;       // of `columns` in a line
  std::size_t width_ = 0;                 // fields of a line
  std::vector<std::string_view> fields_;
  std::optional<Error> error_;
};

// `WHAT, line N: MESSAGE`, as an error of the client's.
Error fault_at(std::string_view what, std::int64_t line, std::string_view message);
// What was read, between backticks, cut to forty characters; control characters become `?`.
std::string quoted(std::string_view text);

}  // namespace signalbox::trace
