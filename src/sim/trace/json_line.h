// SPDX-License-Identifier: Apache-2.0
// Reads one flat JSON object from one line: numbers and lists of numbers by key; what else there is
// can be passed over. The first fault ends the reading. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace signalbox::trace {

class JsonLine {
 public:
  // The text must outlive the reader.
  explicit JsonLine(std::string_view text) : text_(text) {}

  // The next key, whose value has to be read or skipped next; nothing at the end or after a fault.
  // Escapes in keys stay as they are.
  std::optional<std::string_view> next_key();

  // The value; 0 after a fault. A decimal part of zeros alone is read as a whole number.
  std::int64_t integer();
  void integers(std::vector<std::int64_t>& out);
  void skip();

  // A full sentence.
  const std::optional<std::string>& fault() const { return fault_; }

 private:
  void space();
  bool take(char c);
  bool expect(char c);
  std::optional<std::string_view> string();
  void skip_scalar();
  void fail(std::string_view wanted);

  std::string_view text_;
  std::size_t at_ = 0;
  bool begun_ = false;
  bool ended_ = false;
  std::optional<std::string> fault_;
};

}  // namespace signalbox::trace
