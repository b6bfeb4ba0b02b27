// SPDX-License-Identifier: Apache-2.0
// Goal: the one date form that HTTP writes. Method: known dates, and the C library as oracle.
#include "io/http/date.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <ctime>

namespace signalbox::http {
namespace {

TEST(HttpDate, WritesKnownDates) {
  EXPECT_EQ(HttpDate(784111777).text(), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(HttpDate(0).text(), "Thu, 01 Jan 1970 00:00:00 GMT");
  EXPECT_EQ(HttpDate(1709210096).text(), "Thu, 29 Feb 2024 12:34:56 GMT");
  EXPECT_EQ(HttpDate(253402300799).text(), "Fri, 31 Dec 9999 23:59:59 GMT");
}

RC_GTEST_PROP(HttpDate, AgreesWithTheCLibrary, ()) {
  const std::time_t time = *rc::gen::inRange<std::time_t>(0, 253402300800);
  std::tm parts{};
  gmtime_r(&time, &parts);
  char text[40];
  std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &parts);
  RC_ASSERT(HttpDate(time).text() == text);
}

}  // namespace
}  // namespace signalbox::http
