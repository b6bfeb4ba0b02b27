// SPDX-License-Identifier: Apache-2.0
// Goal: every setting of a load is declared once, with a default within its range. Method: a
// visitor over the declarations.
#include "sim/load_settings.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <type_traits>
#include <vector>

namespace signalbox::sim {
namespace {

template <typename T>
struct IsVector : std::false_type {};
template <typename T>
struct IsVector<std::vector<T>> : std::true_type {};

struct Judge {
  std::set<std::string> names;

  template <typename T>
  void operator()(T& field, std::string_view name, std::string_view meaning, Range range = {}) {
    EXPECT_TRUE(names.insert(std::string(name)).second) << name;
    EXPECT_EQ(meaning.back(), '.') << name;
    if constexpr (std::is_same_v<T, Duration>) {
      within(to_seconds(field), range, name);
    } else if constexpr (std::is_arithmetic_v<T>) {
      within(static_cast<double>(field), range, name);
    } else if constexpr (IsVector<T>::value) {
      typename T::value_type item{};
      Judge inner;
      describe(inner, item);
      EXPECT_FALSE(inner.names.empty()) << name;
    } else if constexpr (std::is_enum_v<T>) {
      bool named = false;
      for (const auto& [value, text] : EnumNames<T>::values) named |= value == field;
      EXPECT_TRUE(named) << name;
    } else {
      Judge inner;
      describe(inner, field);
      EXPECT_FALSE(inner.names.empty()) << name;
    }
  }
  static void within(double value, Range range, std::string_view name) {
    EXPECT_GE(value, range.low) << name;
    EXPECT_LE(value, range.high) << name;
  }
};

TEST(LoadSettings, DefaultsAreWithinTheirRangesAndNamesAreUnique) {
  Load load;
  Judge judge;
  describe(judge, load);
  EXPECT_EQ(judge.names.size(), 26u) << "every member but the trace is a setting";
}

}  // namespace
}  // namespace signalbox::sim
