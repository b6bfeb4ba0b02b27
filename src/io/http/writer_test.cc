// SPDX-License-Identifier: Apache-2.0
// Goal: what is written is what the parsers read, and no value breaks out of its field.
// Method: examples and a law over arbitrary values.
#include "io/http/writer.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "io/http/head_parser.h"

namespace signalbox::http {
namespace {

TEST(Writer, WritesHeads) {
  std::string out;
  append_status_line(out, 200);
  append_field(out, "content-length", 0);
  EXPECT_TRUE(append_field(out, "x", "a\tb"));
  append_end_of_head(out);
  EXPECT_EQ(out, "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nx: a\tb\r\n\r\n");
  out.clear();
  append_status_line(out, 299);
  EXPECT_EQ(out, "HTTP/1.1 299 \r\n");
  out.clear();
  EXPECT_TRUE(append_request_line(out, "POST", "/v1?x=%20"));
  EXPECT_EQ(out, "POST /v1?x=%20 HTTP/1.1\r\n");
}

TEST(Writer, LeavesOutWhatWouldBreakTheFraming) {
  std::string out;
  for (const std::string& bad :
       {std::string("a\r\nX: y"), std::string("a\nb"), std::string("a\rb"), std::string("a\0b", 3),
        std::string("a\x7f"), std::string(40, 'v') + "\n"}) {
    EXPECT_FALSE(append_field(out, "x", bad));
    EXPECT_FALSE(append_field(out, bad, "x"));
    EXPECT_FALSE(append_request_line(out, "GET", "/" + bad));
    EXPECT_FALSE(append_request_line(out, bad, "/"));
  }
  EXPECT_FALSE(append_field(out, "", "x"));
  EXPECT_FALSE(append_field(out, "x:", "x"));
  EXPECT_FALSE(append_request_line(out, "GET", "/a b"));
  EXPECT_FALSE(append_request_line(out, "GET", ""));
  EXPECT_EQ(out, "");
}

TEST(Writer, WritesChunks) {
  EXPECT_EQ(ChunkHeader(1).text(), "1\r\n");
  EXPECT_EQ(ChunkHeader(0xab0).text(), "ab0\r\n");
  EXPECT_EQ(ChunkHeader(~std::uint64_t{0}).text(), "ffffffffffffffff\r\n");
  std::string out;
  append_chunk(out, "");
  append_chunk(out, "hello");
  EXPECT_EQ(out, "5\r\nhello\r\n");
}

RC_GTEST_PROP(Writer, FieldsAreReadBackOrLeftOut,
              (const std::string& name, const std::string& value)) {
  std::string out;
  append_status_line(out, 200);
  const bool written = append_field(out, name, value);
  append_field(out, "content-length", 0);
  append_end_of_head(out);
  ResponseParser parser{Limits{}};
  RC_PRE(field_name(all(kToken, name) ? name : "") == FieldName::Other);
  RC_ASSERT(parser.parse(out) == Progress::Complete);
  RC_ASSERT(parser.head_length() == out.size());
  RC_ASSERT(parser.head().fields.size() == (written ? 2U : 1U));
  if (written) RC_ASSERT(parser.head().fields[0].value == trim_blanks(value));
}

}  // namespace
}  // namespace signalbox::http
