// SPDX-License-Identifier: Apache-2.0
// Goal: comma-separated text is read as written, and what is wrong is named with its line and a
// cure. Method: small texts, right and wrong, through the plainest readers.
#include "sim/trace/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/trace/azure.h"
#include "sim/trace/tidal.h"

namespace signalbox::trace {
namespace {

using testing::HasSubstr;

TEST(Table, FindsColumnsByNameInAnyOrder) {
  Table table("b,other,a\r\n1,x,2.5\r\n\r\n3,,4\r\n", "table", {"a", "b"});
  ASSERT_TRUE(table.next());
  EXPECT_EQ(table.real(0, {0, 10}), 2.5);
  EXPECT_EQ(table.integer(1, {0, 10}), 1);
  ASSERT_TRUE(table.next());
  EXPECT_EQ(table.real(0, {0, 10}), 4);
  EXPECT_FALSE(table.next());
  EXPECT_FALSE(table.error());
}

TEST(Table, AByteOrderMarkIsNoPartOfTheFirstName) {
  Table table("\xEF\xBB\xBF" "a,b\n1,2\n", "table", {"a", "b"});
  EXPECT_TRUE(table.next());
}

TEST(Table, NamesLineColumnFaultAndCure) {
  Table table("a\n1\nabc\n", "table", {"a"});
  ASSERT_TRUE(table.next());
  ASSERT_TRUE(table.next());
  EXPECT_EQ(table.integer(0, {0, 10}), 0);
  ASSERT_TRUE(table.error());
  EXPECT_EQ(table.error()->message,
            "table, line 3: `a` is `abc`; write a whole number from 0 to 10.");
  EXPECT_FALSE(table.next());
}

TEST(Table, RefusesNumbersThatAreNoneOrOutOfRange) {
  for (const char* bad : {"", "1.5", " 1", "1 ", "11", "-1", "99999999999999999999", "nan"}) {
    const std::string text = std::string("a,b\n") + bad + ",1";
    Table table(text, "table", {"a", "b"});
    ASSERT_TRUE(table.next());
    table.integer(0, {0, 10});
    EXPECT_TRUE(table.error()) << bad;
  }
  for (const char* bad : {"", "nan", "inf", "1e400", "1e", "-0.1", "0x1"}) {
    const std::string text = std::string("a,b\n") + bad + ",1";
    Table table(text, "table", {"a", "b"});
    ASSERT_TRUE(table.next());
    table.real(0, {0, 10});
    EXPECT_TRUE(table.error()) << bad;
  }
}

TEST(Table, RefusesRowsOfAnotherWidthAndHeadersWithoutAColumn) {
  Table narrow("a,b\n1\n", "table", {"a", "b"});
  EXPECT_FALSE(narrow.next());
  EXPECT_THAT(narrow.error()->message, HasSubstr("line 2: the line has 1 fields and the header 2"));
  Table headless("x,y\n1,2\n", "table", {"a"});
  EXPECT_FALSE(headless.next());
  EXPECT_THAT(headless.error()->message, HasSubstr("no column `a`"));
  Table nothing("", "table", {"a"});
  EXPECT_FALSE(nothing.next());
  EXPECT_TRUE(nothing.error());
}

TEST(Azure, ReadsTimesAndLengths) {
  const auto read = read_azure("t_ms,input_tokens,output_tokens\n0.0,4808,10\n98.2,110,0\n");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(fault_of(*read), std::nullopt);
  ASSERT_EQ(read->calls.size(), 2u);
  EXPECT_EQ(read->calls[0].prompt_tokens, 4808);
  EXPECT_EQ(read->calls[1].at, std::chrono::microseconds(98'200));
  EXPECT_EQ(read->calls[1].output_tokens, 1);  // an engine says at least one
  EXPECT_NE(prompt_of(*read, read->calls[0]), prompt_of(*read, read->calls[1]));
}

TEST(Azure, ReadsThePublishedFormAsWell) {
  const auto read = read_azure(
      "TIMESTAMP,ContextTokens,GeneratedTokens\n"
      "2023-11-16 23:59:59.5,4808,10\n"
      "2023-11-17 00:00:03.9799600,3180,8\n");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(fault_of(*read), std::nullopt);
  EXPECT_EQ(read->calls[0].at, Duration::zero());
  EXPECT_NEAR(to_seconds(read->calls[1].at), 4.47996, 1e-6);
  EXPECT_EQ(read->calls[1].prompt_tokens, 3180);
  for (const char* bad : {"2023-11-16", "2023-13-16 00:00:00", "2023-11-16 24:00:00",
                          "2023-11-16 00:61:00", "2023-11-16T00:00:00", "x", ""}) {
    const std::string text =
        std::string("TIMESTAMP,ContextTokens,GeneratedTokens\n") + bad + ",1,1\n";
    const auto refused = read_azure(text);
    ASSERT_FALSE(refused) << bad;
    EXPECT_THAT(refused.error().message, HasSubstr("line 2: `TIMESTAMP` is")) << bad;
  }
}

TEST(Azure, RefusesAFileWithoutRequests) {
  EXPECT_FALSE(read_azure("t_ms,input_tokens,output_tokens\n"));
  const auto century = read_azure("TIMESTAMP,ContextTokens,GeneratedTokens\n"
                                  "2123-11-16 18:17:03.97,48,10\n2023-11-17 00:00:03,11,0\n");
  ASSERT_FALSE(century);
  EXPECT_THAT(century.error().message, HasSubstr("more than 31 years"));
  EXPECT_FALSE(read_azure(""));
}

TEST(Tidal, ReadsQuartersThatRepeat) {
  const auto read = read_tidal(
      "hour_utc8,quarter,nodes_h800x8,income_kusd_per_hour,relative_traffic\n"
      "23,2,278,29.86,0.9\n23,3,278,29.86,1\n0,0,218,21.81,0.5\n0,1,218,21.81,0.4\n");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->period, std::chrono::hours(1));
  EXPECT_DOUBLE_EQ(mean_of(*read), 0.7);
  EXPECT_EQ(stretch_at(*read, std::chrono::minutes(80)).rate, 1);
}

TEST(Tidal, RefusesAGap) {
  const auto read = read_tidal("hour_utc8,quarter,relative_traffic\n1,0,1\n1,2,1\n");
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message, HasSubstr("tidal trace, line 3"));
}

}  // namespace
}  // namespace signalbox::trace
