// SPDX-License-Identifier: Apache-2.0
// Id<Tag, Rep>: integers that cannot be mixed up. Value 0 is "none" for every id.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace signalbox {

template <typename Tag, typename Rep = std::uint32_t>
class Id {
 public:
  using Value = Rep;

  constexpr Id() = default;
  constexpr explicit Id(Rep value) : value_(value) {}

  constexpr Rep value() const { return value_; }
  constexpr explicit operator bool() const { return value_ != 0; }
  constexpr auto operator<=>(const Id&) const = default;

 private:
  Rep value_ = 0;
};

}  // namespace signalbox

template <typename Tag, typename Rep>
struct std::hash<signalbox::Id<Tag, Rep>> {
  std::size_t operator()(signalbox::Id<Tag, Rep> id) const noexcept {
    // Fibonacci hashing: ids are dense small integers.
    return static_cast<std::size_t>(id.value()) * 0x9E3779B97F4A7C15ull;
  }
};
