// SPDX-License-Identifier: Apache-2.0
// Goal: every setting of a load is declared once, with a default within its range. Method: a
// visitor over the declarations.
#include "sim/load_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "sim/scenario.h"

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

TEST(LoadSettings, WhatDoesNotGoTogetherIsNamed) {
  using namespace std::chrono_literals;
  EXPECT_EQ(fault_of(Load{}), std::nullopt);
  const auto fault = [](auto change) {
    Load load;
    change(load);
    return fault_of(load).value_or("none");
  };
  using testing::HasSubstr;
  EXPECT_THAT(fault([](Load& l) { l.turn.least = 9999; }), HasSubstr("`turn.least`"));
  EXPECT_THAT(fault([](Load& l) { l.answer.quantiles = {{0.5, 9}, {0.5, 10}}; }),
              HasSubstr("`answer.quantiles[1]`"));
  EXPECT_THAT(fault([](Load& l) { l.answer.quantiles = {{0.5, 9}, {0.6, 8}}; }),
              HasSubstr("`answer.quantiles[1]`"));
  EXPECT_THAT(fault([](Load& l) { l.arrivals.curve.points = {{2s, 1}, {1s, 1}}; }),
              HasSubstr("points[1]"));
  EXPECT_THAT(fault([](Load& l) {
                l.arrivals.curve.points = {{0s, 1}, {9s, 1}};
                l.arrivals.curve.period = 9s;
              }),
              HasSubstr("period"));
  EXPECT_THAT(fault([](Load& l) { l.arrivals.bursts.on = 1s; }), HasSubstr("set both"));
  EXPECT_THAT(fault([](Load& l) { l.sessions_at_once = 3; }), HasSubstr("sessions_at_once"));
  EXPECT_THAT(fault([](Load& l) { l.lasts = l.warm_up = 9s; }), HasSubstr("warm_up"));
  EXPECT_THAT(fault([](Load& l) {
                trace::Trace broken;
                broken.calls.resize(1);
                l.trace = std::make_shared<trace::Trace>(broken);
              }),
              HasSubstr("call 0 has no prompt"));
}

TEST(LoadSettings, RandomLoadsGoTogether) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    EXPECT_EQ(fault_of(random_scenario(seed, 100).load), std::nullopt) << seed;
  }
}

}  // namespace
}  // namespace signalbox::sim
