// SPDX-License-Identifier: Apache-2.0
// Goal: equal block ids become equal beginnings of prompts, and nothing else does; foreign text is
// refused with its place. Method: hand-written lines.
#include "sim/trace/mooncake.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace signalbox::trace {
namespace {

using testing::HasSubstr;

constexpr const char* kThree =
    R"({"timestamp": 0, "input_length": 1100, "output_length": 500, "hash_ids": [0, 1, 2]})"
    "\n"
    R"({"timestamp": 3000, "input_length": 1536, "output_length": 0, "hash_ids": [0, 1, 3]})"
    "\n\n"
    R"({"output_length":7,"hash_ids":[0],"type":{"a":["x\"}"]},"input_length":40,"timestamp":27})";

TEST(Mooncake, ReadsTimesLengthsAndSharedBeginnings) {
  const auto read = read_mooncake(kThree);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(fault_of(*read), std::nullopt);
  ASSERT_EQ(read->calls.size(), 3u);
  EXPECT_EQ(read->calls[1].at, std::chrono::milliseconds(27));  // in order of time
  EXPECT_EQ(read->lasts, std::chrono::seconds(3));
  EXPECT_EQ(read->calls[2].output_tokens, 1);
  const auto first = prompt_of(*read, read->calls[0]);
  const auto third = prompt_of(*read, read->calls[2]);
  ASSERT_EQ(first.size(), 3u);
  EXPECT_EQ(first[0], third[0]);
  EXPECT_EQ(first[1], third[1]);
  EXPECT_NE(first[2].content, third[2].content);
  EXPECT_EQ(first[2].tokens, 1100 - 1024);
  EXPECT_EQ(third[2].tokens, 512);
}

TEST(Mooncake, WhatHalfOfTheCallsBeginWithIsCommonToAllCopies) {
  const auto read = read_mooncake(kThree);
  ASSERT_TRUE(read);
  Call call = read->calls[0];
  const auto recorded = prompt_of(*read, call);
  call.copy = 1;
  const auto copied = prompt_of(*read, call);
  EXPECT_EQ(recorded[0], copied[0]);
  EXPECT_EQ(recorded[1], copied[1]);
  EXPECT_NE(recorded[2].content, copied[2].content);
  EXPECT_EQ(recorded[2].tokens, copied[2].tokens);
}

TEST(Mooncake, RefusesWhatItDoesNotUnderstand) {
  const auto message = [](const std::string& line) {
    const auto read = read_mooncake(std::string(kThree) + "\n" + line);
    return read ? std::string("read") : read.error().message;
  };
  EXPECT_THAT(message("nonsense"), HasSubstr("Mooncake trace, line 5: column 1 has `nonsense`"));
  EXPECT_THAT(message(R"({"timestamp": 1})"), HasSubstr("`input_length` is missing"));
  EXPECT_THAT(message(R"({"timestamp": 1, "input_length": 513, "output_length": 1,)"
                      R"( "hash_ids": [1]})"),
              HasSubstr("`hash_ids` has 1 ids; write one for each 512 tokens"));
  EXPECT_THAT(message(R"({"timestamp": 1, "input_length": 99999999, "output_length": 1,)"
                      R"( "hash_ids": [1]})"),
              HasSubstr("1 to 1e7 tokens"));
  EXPECT_THAT(message(R"({"timestamp": 1.5})"), HasSubstr("a whole number"));
  EXPECT_THAT(message(R"({"hash_ids": [1, 2)"), HasSubstr("the line's end"));
  EXPECT_THAT(message(R"({"a": )" + std::string(1000, '[')), HasSubstr("nested less deeply"));
  EXPECT_THAT(message(R"({"timestamp": 1} x)"), HasSubstr("nothing more"));
  EXPECT_FALSE(read_mooncake(""));
}

}  // namespace
}  // namespace signalbox::trace
