// SPDX-License-Identifier: Apache-2.0
// Equality of blocks by what they declare, for blocks that other modules own: no operator== is
// asked of them, and a member that is no setting does not count. Internal.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "core/spec/text_form.h"

namespace signalbox::spec {

template <typename T>
bool same_settings(const T& a, const T& b);

// First pass: where the fields of one side are. describe() takes non-const and changes nothing.
struct FieldFinder {
  std::vector<const void*> found;

  template <typename T>
  void operator()(T& field, std::string_view, std::string_view, Rule = {}) {
    found.push_back(&field);
  }
};

// Second pass, over the other side: the fields come in the same order.
struct FieldComparer {
  const std::vector<const void*>& others;
  std::size_t next = 0;
  bool same = true;

  template <typename T>
  void operator()(T& field, std::string_view, std::string_view, Rule = {}) {
    const T& other = *static_cast<const T*>(others[next++]);
    if constexpr (Block<T> && !HasTextForm<T>) {
      same = same_settings(field, other) && same;
    } else {
      same = field == other && same;
    }
  }
};

template <typename T>
bool same_settings(const T& a, const T& b) {
  FieldFinder finder;
  describe(finder, const_cast<T&>(a));
  FieldComparer comparer{finder.found};
  describe(comparer, const_cast<T&>(b));
  return comparer.same;
}

}  // namespace signalbox::spec
