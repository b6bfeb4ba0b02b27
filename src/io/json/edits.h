// SPDX-License-Identifier: Apache-2.0
// Edits: a few replacements in a text that stays where it is. The result is a list of pieces for a
// gathering write: stretches of the original and small texts of our own.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "io/json/span.h"

namespace signalbox::json {

class Edits {
 public:
  // `original` must outlive the pieces.
  explicit Edits(std::string_view original) : original_(original) { edits_.reserve(4); }

  // Puts `text` in the place of `span`; an empty span inserts before its begin. Spans may not
  // overlap; insertions at one place stand in the order of the calls.
  void replace(Span span, std::string_view text);

  bool empty() const { return edits_.empty(); }
  std::size_t total_size() const;
  // Appends the pieces. They stay valid until the next replace() or the end of this object.
  void pieces(std::vector<std::string_view>& out) const;
  void append_to(std::string& out) const;

 private:
  struct Edit {
    Span span;
    std::size_t text = 0;  // offset in text_
    std::size_t size = 0;
  };
  std::string_view original_;
  std::vector<Edit> edits_;  // by place
  std::string text_;
};

}  // namespace signalbox::json
