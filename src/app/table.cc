// SPDX-License-Identifier: Apache-2.0
// Aligns cells.
#include "app/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>

namespace signalbox::app {
namespace {

// A number, or one with its unit: `4`, `-1.5e3`, `98 %`, `250 ms`, `4.1/s`.
bool is_figure(const std::string& cell) {
  if (cell.empty() || cell[0] == 'e') return false;
  const std::size_t end = cell.find_first_not_of("0123456789.-+%e");
  if (end == std::string::npos) return true;
  constexpr std::string_view kUnits[] = {" s", " ms", " %", "/s", " USD"};
  return end > 0 && std::find(std::begin(kUnits), std::end(kUnits), cell.substr(end)) !=
                        std::end(kUnits);
}

}  // namespace

std::string Table::text() const {
  std::vector<std::size_t> widths;
  for (const auto& row : rows_) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string pad(widths[i] - row[i].size(), ' ');
      line += is_figure(row[i]) ? pad + row[i] : row[i] + pad;
      if (i + 1 < row.size()) line += "  ";
    }
    while (!line.empty() && line.back() == ' ') line.pop_back();
    out += line + "\n";
  }
  return out;
}

std::string printable(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
    // U+0080 to U+009F are control characters, too, in two bytes.
    const bool wide = c == 0xC2 && next >= 0x80 && next < 0xA0;
    if (c >= 0x20 && c != 0x7F && !wide) {
      out += text[i];
      continue;
    }
    out += fmt::format("\\x{:02x}", wide ? next : c);
    if (wide) ++i;
  }
  return out;
}

std::string clipped(std::string_view text, std::size_t columns, std::size_t rows) {
  std::string out;
  std::size_t line = 0, column = 0;
  for (const char c : text) {
    if (line == rows) break;
    if (c == '\n') {
      out += c;
      ++line;
      column = 0;
      continue;
    }
    const bool begins = (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    column += begins ? 1 : 0;
    if (column <= columns) out += c;
  }
  return out;
}

std::string fixed(double value, int decimals) { return fmt::format("{:.{}f}", value, decimals); }

}  // namespace signalbox::app
