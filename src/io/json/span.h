// SPDX-License-Identifier: Apache-2.0
// Span: a byte range of a text that somebody else holds. Offsets survive a move of the text.
#pragma once

#include <cstdint>
#include <string_view>

namespace signalbox::json {

// [begin, end). Empty: absent, since no JSON value is empty.
struct Span {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;

  constexpr explicit operator bool() const { return end > begin; }
  constexpr std::uint32_t size() const { return end - begin; }
  constexpr std::string_view of(std::string_view text) const {
    return text.substr(begin, size());
  }
  constexpr bool operator==(const Span&) const = default;
};

}  // namespace signalbox::json
