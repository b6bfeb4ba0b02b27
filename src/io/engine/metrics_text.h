// SPDX-License-Identifier: Apache-2.0
// Reads the few samples that are wanted from a page in Prometheus text format, in one pass and
// without allocating. Pure; any thread. Whatever the bytes are, it reads inside the page and ends.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace signalbox::engine {

// A set of at most 64 metric names of at least 8 bytes. The names must outlive the set. Building it
// is slow; looking a name up costs some 5 ns.
class WantedNames {
 public:
  explicit WantedNames(std::vector<std::string_view> names);

  // The position of `name` in the constructor's list; -1: not wanted.
  int find(std::string_view name) const;

 private:
  static constexpr std::size_t kSlots = 256;

  std::vector<std::string_view> names_;
  std::array<std::int8_t, kSlots> table_;  // open addressing; -1: empty
};

struct Sample {
  int name = -1;            // position in the WantedNames
  std::string_view labels;  // between the braces, checked; empty: none
  double value = 0;         // may be NaN or infinite, as the page says
};

// Pulls the wanted samples in page order. A wanted line that breaks the format is skipped and
// counted; other lines are skipped unread. A last line without its line feed may have been cut, so
// it counts as broken. Lines that begin with a blank are not read.
class MetricsScanner {
 public:
  MetricsScanner(std::string_view page, const WantedNames& wanted) : rest_(page), wanted_(wanted) {}

  bool next(Sample& sample);  // false: the page is over
  int broken() const { return broken_; }

 private:
  std::string_view rest_;
  const WantedNames& wanted_;
  int broken_ = 0;
};

// The value of a label in `Sample::labels`, as written: escapes are not resolved. Absent: none.
std::optional<std::string_view> label(std::string_view labels, std::string_view name);

// A whole number such as a rank or a count of blocks in `text`; none when it is anything else
// (engines write "None").
std::optional<std::int64_t> whole_number(std::string_view text);

}  // namespace signalbox::engine
