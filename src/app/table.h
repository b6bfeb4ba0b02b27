// SPDX-License-Identifier: Apache-2.0
// Text tables for terminals.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace signalbox::app {

class Table {
 public:
  explicit Table(std::vector<std::string> heads) { rows_.push_back(std::move(heads)); }
  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  // Columns as wide as their widest cell, two spaces between; figures, with their units, to the
  // right.
  std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

// `text` for a terminal: control characters, which could move the cursor or change the title, are
// shown as \xNN.
std::string printable(std::string_view text);

// The first `rows` lines of `text`, each cut to its first `columns` characters (of UTF-8).
std::string clipped(std::string_view text, std::size_t columns, std::size_t rows);

// `value` with so many decimals.
std::string fixed(double value, int decimals);

}  // namespace signalbox::app
