// SPDX-License-Identifier: Apache-2.0
// Goal: sessions of agents keep their order, their waits and what their prompts share. Method: one
// small session with a sub-agent, and wrong tables.
#include "sim/trace/agentic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace signalbox::trace {
namespace {

using testing::HasSubstr;

const std::string kHeader =
    "session,subagent,call,t_s,think_s,api_s,ttft_s,input_tokens,output_tokens,blocks,"
    "prefix_of_call,shared_blocks,input_types,stop,model\n";
const std::string kCalls = kHeader +
                           "7,,0,0.0,0.0,7.5,,1000,20,15,-1,0,t,tool,m\n"    // 0
                           "7,,1,19.0,12.0,9.0,,1100,30,17,0,15,r,tool,m\n"  // 1: goes on from 0
                           "7,3,2,30.0,,5.0,,640,10,10,-1,0,t,tool,m\n"      // 2: a sub-agent
                           "7,3,3,40.0,4.0,5.0,,700,10,10,2,10,t,end,m\n"    // 3: it ends
                           "7,,4,50.0,1.0,2.0,,900,10,14,1,8,r,end,m\n"      // 4: parent, cut back
                           "8,,0,0.0,0.0,,,1000,5,15,-1,0,t,tool,m\n";
const std::string kSessions = "session,calls,tool_tokens,system_tokens\n7,5,500,100\n8,1,500,90\n";

Trace small() {
  auto read = read_agentic(kCalls, kSessions);
  EXPECT_TRUE(read) << read.error().message;
  return read ? std::move(*read) : Trace{};
}

TEST(Agentic, SessionsCoverTheirCalls) {
  const Trace trace = small();
  EXPECT_EQ(fault_of(trace), std::nullopt);
  ASSERT_EQ(trace.sessions.size(), 2u);
  EXPECT_EQ(trace.sessions[0].calls, 5);
  EXPECT_LT(trace.sessions[0].start, Duration::zero());
}

TEST(Agentic, ACallWaitsForItsAgentsLastAndForSubAgentsThatEnded) {
  const Trace trace = small();
  ASSERT_EQ(trace.calls.size(), 6u);
  EXPECT_EQ(trace.calls[0].after, -1);
  EXPECT_EQ(trace.calls[1].after, 0);
  EXPECT_EQ(trace.calls[1].think, std::chrono::seconds(12));
  EXPECT_EQ(trace.calls[2].after, 1);  // spawned behind the parent's call
  EXPECT_EQ(trace.calls[2].think, std::chrono::seconds(2));
  EXPECT_EQ(trace.calls[3].after, 2);
  EXPECT_EQ(trace.calls[4].after, 3);  // joins it
  EXPECT_EQ(trace.calls[4].think, std::chrono::seconds(5));
  EXPECT_EQ(trace.calls[5].after, -1);
}

TEST(Agentic, APromptRepeatsTheLastOneAndItsAnswer) {
  const Trace trace = small();
  const auto first = prompt_of(trace, trace.calls[0]);
  const auto second = prompt_of(trace, trace.calls[1]);
  ASSERT_EQ(first.size(), 3u);  // tools, system, message
  ASSERT_EQ(second.size(), 5u);
  EXPECT_TRUE(std::equal(first.begin(), first.end(), second.begin()));
  EXPECT_EQ(second[3], (Span{answer_of(trace.calls[0]), 20}));
  EXPECT_EQ(tokens_of(second), 1100);
}

TEST(Agentic, APromptThatWasCutBackSharesWhatIsRecorded) {
  const Trace trace = small();
  const auto earlier = prompt_of(trace, trace.calls[1]);
  const auto cut = prompt_of(trace, trace.calls[4]);
  ASSERT_EQ(cut.size(), 3u);  // tools (500), 12 tokens of the system prompt, the rest
  EXPECT_EQ(cut[0], earlier[0]);
  EXPECT_EQ(cut[1].content, earlier[1].content);
  EXPECT_EQ(cut[0].tokens + cut[1].tokens, 8 * 64);
  EXPECT_EQ(tokens_of(cut), 900);
}

TEST(Agentic, SessionsOfEqualClientsShareToolsAndNoMore) {
  const Trace trace = small();
  const auto one = prompt_of(trace, trace.calls[0]);
  const auto other = prompt_of(trace, trace.calls[5]);
  EXPECT_EQ(one[0], other[0]);
  EXPECT_NE(one[1].content, other[1].content);
  const auto copy = prompt_of(trace, trace.calls[0], 9);
  EXPECT_EQ(one[1], copy[1]);
  EXPECT_NE(one[2].content, copy[2].content);
}

TEST(Agentic, RefusesPrefixesThatCannotBe) {
  const auto message = [](const std::string& row) {
    const auto read = read_agentic(kCalls + row, kSessions);
    return read ? std::string("read") : read.error().message;
  };
  EXPECT_EQ(message("8,,1,1,1,1,,100,1,1,0,1,t,tool,m\n"), "read");
  EXPECT_THAT(message("8,,1,1,1,1,,100,1,1,1,1,t,tool,m\n"), HasSubstr("`prefix_of_call` is `1`"));
  EXPECT_THAT(message("8,,1,1,1,1,,100,1,1,0,2,t,tool,m\n"), HasSubstr("`shared_blocks` is `2`"));
  EXPECT_THAT(message("8,,2,1,1,1,,100,1,1,0,1,t,tool,m\n"),
              HasSubstr("line 8: `call` is `2`; write a whole number from 1 to 1"));
  EXPECT_THAT(message("9,,1,1,1,1,,100,1,1,-1,0,t,tool,m\n"), HasSubstr("`call` is `1`"));
  EXPECT_FALSE(read_agentic(kHeader, kSessions));
  EXPECT_FALSE(read_agentic(kCalls, "session\n7\n"));
}

}  // namespace
}  // namespace signalbox::trace
