// SPDX-License-Identifier: Apache-2.0
// Text tables for terminals.
#pragma once

#include <string>
#include <vector>

namespace signalbox::app {

class Table {
 public:
  explicit Table(std::vector<std::string> heads) { rows_.push_back(std::move(heads)); }
  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  // Columns as wide as their widest cell, two spaces between; figures to the right.
  std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

// `value` with so many decimals.
std::string fixed(double value, int decimals);

}  // namespace signalbox::app
