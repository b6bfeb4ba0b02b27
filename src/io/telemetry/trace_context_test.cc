// SPDX-License-Identifier: Apache-2.0
// Goal: valid headers are read and written exactly, invalid ones never. Method: the cases of the
// W3C text, every single-byte mutation of a valid header.
#include "io/telemetry/trace_context.h"

#include <gtest/gtest.h>

namespace signalbox::telemetry {
namespace {

const std::string kValid = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

std::string written(const TraceContext& context) {
  std::string out;
  append_traceparent(out, context);
  return out;
}

TEST(TraceContext, WritesBackWhatItReads) {
  auto context = parse_traceparent(kValid);
  ASSERT_TRUE(context);
  EXPECT_TRUE(context->sampled);
  EXPECT_FALSE(context->random);
  EXPECT_EQ(written(*context), kValid);
}

TEST(TraceContext, CopiesUnknownFlagsAsZero) {
  auto context = parse_traceparent(kValid.substr(0, 53) + "fe");
  ASSERT_TRUE(context);
  EXPECT_EQ(written(*context), kValid.substr(0, 53) + "02");
}

TEST(TraceContext, RefusesWhatIsInvalid) {
  for (const std::string& header : std::initializer_list<std::string>{
           "", kValid.substr(1), kValid + "0", kValid + "-00", "ff" + kValid.substr(2),
           "00-00000000000000000000000000000000-b7ad6b7169203331-01",
           "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
           "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
           "00_0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", " " + kValid.substr(0, 54)}) {
    EXPECT_FALSE(parse_traceparent(header)) << header;
  }
}

TEST(TraceContext, ReadsTheStartOfHigherVersions) {
  auto context = parse_traceparent("cc" + kValid.substr(2) + "-what-the-future-holds");
  ASSERT_TRUE(context);
  EXPECT_EQ(written(*context), kValid);
  EXPECT_TRUE(parse_traceparent("01" + kValid.substr(2)));
  EXPECT_FALSE(parse_traceparent("01" + kValid.substr(2) + ".x"));
}

TEST(TraceContext, NeverReadsAnythingButItsAlphabet) {
  for (std::size_t i = 0; i < kValid.size(); ++i) {
    for (int c = 0; c < 256; ++c) {
      std::string header = kValid;
      header[i] = static_cast<char>(c);
      if (header == kValid) continue;
      auto context = parse_traceparent(header);
      if (!context) continue;
      EXPECT_NE(kValid[i], '-') << header;
      EXPECT_NE(std::string("0123456789abcdef").find(header[i]), std::string::npos) << header;
    }
  }
}

TEST(TraceContext, ChildrenKeepTheTraceAndChangeTheSpan) {
  Rng rng(7, "trace");
  auto context = *parse_traceparent(kValid);
  TraceContext child = child_of(context, rng);
  EXPECT_EQ(child.trace_id, context.trace_id);
  EXPECT_NE(child.parent_id, context.parent_id);
  EXPECT_TRUE(child.sampled);
  EXPECT_NE(child_of(context, rng).parent_id, child.parent_id);
  TraceContext fresh = new_trace(rng);
  EXPECT_TRUE(parse_traceparent(written(fresh)));
  EXPECT_NE(fresh.trace_id, context.trace_id);
  std::string id;
  append_trace_id(id, context);
  EXPECT_EQ(id, "0af7651916cd43dd8448eb211c80319c");
}

}  // namespace
}  // namespace signalbox::telemetry
