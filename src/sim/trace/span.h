// SPDX-License-Identifier: Apache-2.0
// The text of prompts without text: spans of named content. Pure.
#pragma once

#include <cstdint>
#include <span>

namespace signalbox::trace {

// Equal names mean equal content: of two spans of one name, the shorter is the longer's beginning.
struct Span {
  std::uint64_t content = 0;
  std::int64_t tokens = 0;
  bool operator==(const Span&) const = default;
};

std::int64_t tokens_of(std::span<const Span> spans);

// A well-mixed number from two: names of content, chained hashes. splitmix64's finaliser.
std::uint64_t mixed(std::uint64_t a, std::uint64_t b);

}  // namespace signalbox::trace
