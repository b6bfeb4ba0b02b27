// SPDX-License-Identifier: Apache-2.0
// The vocabulary of settings. A module declares each setting of its Config once:
//
//   template <typename Visitor>
//   void describe(Visitor& v, Config& c) {
//     v(c.queue_requests_max, "queue_requests_max", "Requests that may wait.", Range{1, 1e6});
//   }
//
// Reading, validation, defaults, documentation, JSON Schema and the simulator's random
// configurations are visitors over these declarations; see core/spec.
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>

namespace signalbox {

// Inclusive. For Duration fields in seconds, for Bytes in bytes, else in the field's own unit.
struct Range {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
};

// Marks a setting that is read at the start alone: a reload that changes it says so, and what is in
// force stays. A block so marked is so as a whole.
struct AtStart {
  Range range;
};

// A size in memory; read from text such as `8MiB`.
struct Bytes {
  std::int64_t value = 0;
  constexpr auto operator<=>(const Bytes&) const = default;
};

// The names of an enum's values in settings, specialised beside each enum that is a setting:
//
//   template <>
//   struct EnumNames<Mode> {
//     static constexpr std::pair<Mode, std::string_view> values[] = {{Mode::Auto, "auto"}, ...};
//   };
template <typename E>
struct EnumNames;

}  // namespace signalbox
