// SPDX-License-Identifier: Apache-2.0
// Goal: errors travel up unchanged and each code has a status and a name of its own.
// Method: functions that use the macros; a walk over all codes.
#include "base/result.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>

#include "base/check.h"

namespace signalbox {
namespace {

Result<int> half(int x) {
  if (x % 2 != 0) return invalid("odd");
  return x / 2;
}

Result<int> quarter(int x) {
  TRY_ASSIGN(const int h, half(x));
  TRY_CHECK(half(h));
  TRY_ASSIGN(const int q, half(h));
  return q;
}

Result<std::unique_ptr<int>> boxed(int x) {
  TRY_ASSIGN(int h, half(x));
  return std::make_unique<int>(h);
}

TEST(Result, ValuesComeThrough) {
  EXPECT_EQ(quarter(12).value(), 3);
}

TEST(Result, ErrorsGoUpUnchanged) {
  const auto r = quarter(6);
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code, Code::InvalidArgument);
  EXPECT_EQ(r.error().source, Source::Client);
  EXPECT_EQ(r.error().message, "odd");
}

TEST(Result, CarriesValuesThatOnlyMove) {
  auto r = boxed(8);
  ASSERT_TRUE(r);
  EXPECT_EQ(**r, 4);
  EXPECT_FALSE(boxed(7));
}

TEST(Error, EveryCodeHasAStatusAndAName) {
  std::set<std::string_view> names;
  const int last = static_cast<int>(Code::Unavailable);
  for (int i = 0; i <= last; ++i) {
    const Error error{static_cast<Code>(i), Source::Us, false, ""};
    EXPECT_GE(http_status(error), 400);
    EXPECT_LT(http_status(error), 600);
    names.insert(name(error.code));
  }
  EXPECT_EQ(names.size(), static_cast<std::size_t>(last) + 1);
}

TEST(Error, ATimeoutBlamesWhoWasSlow) {
  EXPECT_EQ(http_status({Code::Timeout, Source::Client, false, ""}), 408);
  EXPECT_EQ(http_status({Code::Timeout, Source::Engine, false, ""}), 504);
}

TEST(CheckDeathTest, StopsTheProcessAndSaysWhere) {
  EXPECT_DEATH(check_failed("file.cc", 12, "x > 0"), "file.cc:12: CHECK\\(x > 0\\) failed");
}

}  // namespace
}  // namespace signalbox
