// SPDX-License-Identifier: Apache-2.0
// Goal: a stream is put together to the plain answer that it would have been. Method: recorded
// streams, and payloads by hand.
#include "io/json/chat_assembler.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "io/json/answer_reader.h"
#include "io/json/recorded_for_test.inc"

namespace signalbox::json {
namespace {

using model::Api;

nlohmann::json assembled(Api api, const std::vector<std::string>& all) {
  ChatAssembler assembler(api, 1 << 20);
  for (const std::string& payload : all) {
    const auto result = assembler.add(payload);
    EXPECT_TRUE(result.has_value()) << payload;
  }
  return nlohmann::json::parse(assembler.finish());
}

TEST(ChatAssembler, makes_the_plain_answer_of_a_recorded_stream) {
  const auto answer = assembled(Api::ChatCompletions, payloads(kLlama, "chat stream + usage"));
  EXPECT_EQ(answer["object"], "chat.completion");
  EXPECT_EQ(answer["model"], "smollm2-135m");
  EXPECT_EQ(answer["id"], "chatcmpl-4RC88YbkOJ8X33Nix7t5dBplr0KCY50Y");
  EXPECT_EQ(answer["created"], 1795973682);
  EXPECT_EQ(answer["choices"].size(), 1u);
  EXPECT_EQ(answer["choices"][0]["message"]["role"], "assistant");
  EXPECT_EQ(answer["choices"][0]["message"]["content"], "1. Red\n2");
  EXPECT_EQ(answer["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(answer["usage"]["completion_tokens"], 5);
  EXPECT_EQ(answer["timings"]["cache_n"], 33);
  EXPECT_TRUE(read_answer(Api::ChatCompletions, answer.dump()).complete());
}

TEST(ChatAssembler, keeps_choices_apart) {
  const auto answer = assembled(Api::ChatCompletions, payloads(kLlama, "n 2 stream"));
  ASSERT_EQ(answer["choices"].size(), 2u);
  EXPECT_EQ(answer["choices"][0]["message"]["content"], "1.");
  EXPECT_EQ(answer["choices"][1]["index"], 1);
  EXPECT_EQ(answer["choices"][1]["message"]["content"], "1.");
}

TEST(ChatAssembler, joins_text_reasoning_tool_calls_and_logprobs) {
  const auto answer = assembled(
      Api::ChatCompletions,
      {R"({"id":"i","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":)"
       R"({"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]})",
       R"({"choices":[{"index":0,"delta":{"reasoning_content":"be"}}]})",
       R"({"choices":[{"index":0,"delta":{"reasoning_content":"cause"}}]})",
       R"({"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c0","type":"function",)"
       R"("function":{"name":"f","arguments":""}}]}}]})",
       R"({"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"c1","type":"function",)"
       R"("function":{"name":"g","arguments":"{}"}}]}}]})",
       R"({"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":)"
       R"({"arguments":"{\"a\":"}}]},)"
       R"("logprobs":{"content":[{"token":"x"}]}}]})",
       R"({"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":)"
       R"({"arguments":"1}"}}]},)"
       R"("logprobs":{"content":[{"token":"y"}]}}]})",
       R"({"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls","stop_reason":7}]})",
       R"({"choices":[],"usage":{"prompt_tokens":1}})", "[DONE]"});
  const auto& choice = answer["choices"][0];
  EXPECT_EQ(choice["message"]["content"], nullptr);
  EXPECT_EQ(choice["message"]["reasoning_content"], "because");
  ASSERT_EQ(choice["message"]["tool_calls"].size(), 2u);
  EXPECT_EQ(choice["message"]["tool_calls"][0],
            nlohmann::json::parse(R"({"id":"c0","type":"function","function":)"
                                  R"({"name":"f","arguments":"{\"a\":1}"}})"));
  EXPECT_EQ(choice["message"]["tool_calls"][1]["function"]["name"], "g");
  EXPECT_EQ(choice["logprobs"]["content"].size(), 2u);
  EXPECT_EQ(choice["finish_reason"], "tool_calls");
  EXPECT_EQ(choice["stop_reason"], 7);
  EXPECT_EQ(answer["usage"]["prompt_tokens"], 1);
}

TEST(ChatAssembler, joins_text_completions) {
  const auto answer =
      assembled(Api::Completions, payloads(kVllm, "completions stream token ids return_token_ids"));
  EXPECT_EQ(answer["object"], "text_completion");
  EXPECT_EQ(answer["choices"][0]["text"], "oteW closed");
  EXPECT_EQ(answer["choices"][0]["token_ids"], nlohmann::json({1158, 57, 2007}));
  EXPECT_EQ(answer["choices"][0]["finish_reason"], "length");
  EXPECT_FALSE(answer["choices"][0].contains("message"));
}

TEST(ChatAssembler, refuses_errors_garbage_and_excess) {
  ChatAssembler assembler(Api::ChatCompletions, 100);
  EXPECT_FALSE(assembler.add(R"({"error":{"message":"m"}})").has_value());
  EXPECT_FALSE(assembler.add("garbage").has_value());
  EXPECT_FALSE(assembler.add("[1]").has_value());
  EXPECT_FALSE(assembler.add(R"({"a":"\xFF"})").has_value());
  EXPECT_FALSE(assembler.add(std::string(200, ' ')).has_value());
  ChatAssembler deep(Api::ChatCompletions, 1 << 22);
  const std::string nest = std::string(1000000, '[') + std::string(1000000, ']');
  EXPECT_FALSE(deep.add(R"({"a":)" + nest + "}").has_value());
}

TEST(ChatAssembler, refuses_an_object_of_very_many_members_wherever_it_grows) {
  const std::vector<std::pair<std::string, std::string>> places = {
      {"{", "}"},
      {R"({"choices":[{)", "}]}"},
      {R"({"choices":[{"delta":{)", "}}]}"},
      {R"({"choices":[{"logprobs":{)", "}}]}"},
      {R"({"choices":[{"delta":{"function_call":{)", "}}}]}"},
      {R"({"choices":[{"delta":{"tool_calls":[{)", "}]}}]}"},
      {R"({"choices":[{"delta":{"tool_calls":[{"function":{)", "}}]}}]}"}};
  for (const auto& [head, tail] : places) {
    ChatAssembler assembler(Api::ChatCompletions, 32 << 20);
    const auto add = [&](int key) {
      return assembler.add(head + "\"k" + std::to_string(key) + "\":[1]" + tail).has_value();
    };
    int count = 0;
    while (count < 1000 && add(count)) ++count;
    EXPECT_GE(count, 250) << head;
    EXPECT_LE(count, 256) << head;
    EXPECT_FALSE(assembler.full()) << head;
  }
}

TEST(ChatAssembler, counts_what_it_holds_and_not_what_came) {
  ChatAssembler assembler(Api::ChatCompletions, 64 << 10);
  const std::string chunk = R"({"id":")" + std::string(300, 'i') +
                            R"(","choices":[{"index":0,"delta":{"content":" word"}}]})";
  for (int i = 0; i < 8000; ++i) ASSERT_TRUE(assembler.add(chunk).has_value()) << i;
  EXPECT_FALSE(assembler.full());
  int more = 0;
  while (more < 8000 && assembler.add(chunk)) ++more;
  EXPECT_LT(more, 8000);
  EXPECT_TRUE(assembler.full());
}

TEST(ChatAssembler, keeps_numbers_and_characters_that_were_cut_between_chunks) {
  const auto add = [](ChatAssembler& to, std::string_view text) {
    return to.add(R"({"choices":[{"index":0,"delta":{"content":")" + std::string(text) +
                  R"("}}],"big":12345678901234567890123,"huge":1e400})").has_value();
  };
  ChatAssembler assembler(Api::ChatCompletions, 1 << 20);
  for (const std::string_view text :
       {"\\ud83d", "\\ude00", "\xE2\x82", "\xAC", "\\udc00", "\xFF"}) {
    EXPECT_TRUE(add(assembler, text)) << text;
  }
  const std::string out = assembler.finish();
  EXPECT_NE(out.find("\"content\":\"\\ud83d\\ude00\xE2\x82\xAC\\ufffd\xEF\xBF\xBD\""),
            std::string::npos) << out;
  EXPECT_NE(out.find("\"big\":12345678901234567890123,\"huge\":1e400"), std::string::npos) << out;
}

TEST(ChatAssembler, shows_the_name_that_was_asked_for) {
  ChatAssembler assembler(Api::ChatCompletions, 1 << 20);
  ASSERT_TRUE(assembler.add(R"({"model":"own","choices":[]})").has_value());
  EXPECT_EQ(nlohmann::json::parse(assembler.finish("asked"))["model"], "asked");
  EXPECT_EQ(nlohmann::json::parse(assembler.finish())["model"], "own");
}

}  // namespace
}  // namespace signalbox::json
