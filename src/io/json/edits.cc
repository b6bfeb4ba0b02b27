// SPDX-License-Identifier: Apache-2.0
// Replacements as pieces.
#include "io/json/edits.h"

#include <algorithm>

#include "base/check.h"

namespace signalbox::json {

void Edits::replace(Span span, std::string_view text) {
  CHECK(span.begin <= span.end && span.end <= original_.size());
  const auto at = std::upper_bound(
      edits_.begin(), edits_.end(), span.begin,
      [](std::uint32_t begin, const Edit& edit) { return begin < edit.span.begin; });
  CHECK(at == edits_.begin() || std::prev(at)->span.end <= span.begin);
  CHECK(at == edits_.end() || span.end <= at->span.begin);
  edits_.insert(at, {span, text_.size(), text.size()});
  text_ += text;
}

std::size_t Edits::total_size() const {
  std::size_t size = original_.size() + text_.size();
  for (const Edit& edit : edits_) size -= edit.span.size();
  return size;
}

void Edits::pieces(std::vector<std::string_view>& out) const {
  const auto add = [&](std::string_view piece) {
    if (!piece.empty()) out.push_back(piece);
  };
  std::size_t from = 0;
  for (const Edit& edit : edits_) {
    add(original_.substr(from, edit.span.begin - from));
    add(std::string_view(text_).substr(edit.text, edit.size));
    from = edit.span.end;
  }
  add(original_.substr(from));
}

void Edits::append_to(std::string& out) const {
  std::size_t from = 0;
  for (const Edit& edit : edits_) {
    out.append(original_.substr(from, edit.span.begin - from));
    out.append(text_, edit.text, edit.size);
    from = edit.span.end;
  }
  out.append(original_.substr(from));
}

}  // namespace signalbox::json
