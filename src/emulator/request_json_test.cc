// SPDX-License-Identifier: Apache-2.0
// Goal: bodies are read, rendered and refused as the engines do it.
// Method: bodies and refusals recorded from vLLM 0.32 and llama.cpp.
#include <gtest/gtest.h>

#include "emulator/exchange.h"
#include "emulator/request.h"

namespace signalbox::emulator {
namespace {

constexpr Dialect kVllm = Dialect::Vllm;
constexpr Dialect kLlama = Dialect::LlamaCpp;

std::string refusal(Api api, Dialect dialect, std::string_view body) {
  const auto request = read_generate(api, dialect, body);
  if (request) return "accepted";
  return refusal_body(dialect, api, request.error(), 2048);
}

TEST(RequestJson, RendersByChatMl) {
  const auto r = read_generate(
      Api::Chat, kVllm,
      R"({"messages":[{"role":"system","content":"S"},{"role":"user","content":[
          {"type":"text","text":"a"},{"type":"text","text":"b"}]}],"max_tokens":7,"stream":true,
          "stream_options":{"include_usage":true},"stop":"x","n":2})");
  ASSERT_TRUE(r);
  EXPECT_EQ(r->prompts.front(),
            "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nab<|im_end|>\n"
            "<|im_start|>assistant\n");
  EXPECT_EQ(r->max_tokens, 7);
  EXPECT_TRUE(r->stream && r->include_usage);
  EXPECT_EQ(r->stops, std::vector<std::string>{"x"});
  EXPECT_EQ(r->n, 2);
}

TEST(RequestJson, ToolsComeFirstSoThatTheyArePartOfThePrefix) {
  const auto r = read_generate(Api::Chat, kVllm,
                               R"({"tools":[{"type":"function"}],"messages":[{"role":"user",
                                   "content":"q"}]})");
  ASSERT_TRUE(r);
  EXPECT_TRUE(r->prompts.front().starts_with("<|im_start|>tools\n[{\"type\":\"function\"}]"));
}

TEST(RequestJson, VllmContinuesTheLastMessageOnlyWithBothFlags) {
  const std::string messages =
      R"("messages":[{"role":"user","content":"q"},{"role":"assistant","content":"Red, "}])";
  const auto r = read_generate(
      Api::Chat, kVllm,
      "{" + messages + R"(,"continue_final_message":true,"add_generation_prompt":false})");
  ASSERT_TRUE(r);
  EXPECT_TRUE(r->prompts.front().ends_with("<|im_start|>assistant\nRed, "));
  EXPECT_EQ(r->continued, "Red, ");
  EXPECT_NE(refusal(Api::Chat, kVllm, "{" + messages + R"(,"continue_final_message":true})"),
            "accepted");
  const auto plain = read_generate(Api::Chat, kVllm, "{" + messages + "}");
  EXPECT_TRUE(plain->prompts.front().ends_with("<|im_end|>\n<|im_start|>assistant\n"));
}

TEST(RequestJson, LlamaCppContinuesATrailingAssistantByItself) {
  const auto r = read_generate(
      Api::Chat, kLlama,
      R"({"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"Red, "}]})");
  ASSERT_TRUE(r);
  EXPECT_TRUE(r->prompts.front().ends_with("<|im_start|>assistant\nRed, "));
  EXPECT_TRUE(r->echo);
  EXPECT_NE(refusal(Api::Chat, kLlama,
                    R"({"messages":[{"role":"assistant","content":"a"},
                        {"role":"assistant","content":"b"}]})"),
            "accepted");
}

TEST(RequestJson, MessagesAndResponsesRenderLikeAChat) {
  const std::string expected =
      "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n";
  const auto m = read_generate(
      Api::Messages, kVllm,
      R"({"system":"S","messages":[{"role":"user","content":"q"}],"max_tokens":5})");
  const auto r = read_generate(Api::Responses, kVllm,
                               R"({"instructions":"S","input":"q","max_output_tokens":5})");
  ASSERT_TRUE(m && r);
  EXPECT_EQ(m->prompts.front(), expected);
  EXPECT_EQ(r->prompts.front(), expected);
  EXPECT_EQ(r->max_tokens, 5);
}

TEST(RequestJson, PromptsMayBeStringsListsOrTokenIds) {
  EXPECT_EQ(read_generate(Api::Completions, kVllm, R"({"prompt":["a","b"]})")->prompts.size(), 2u);
  const std::string ids = ids_json(token_ids("hello world"));
  const auto r = read_generate(Api::Completions, kVllm, "{\"prompt\":" + ids + "}");
  ASSERT_TRUE(r);
  EXPECT_EQ(r->prompts.front(), "hello world");
}

TEST(RequestJson, VllmRefusesInItsOwnWords) {
  EXPECT_EQ(refusal(Api::Chat, kVllm, R"({"model":1)"),
            R"({"error":{"message":"1 validation error:\n  {'type': 'json_invalid', 'loc': )"
            R"('body.10', 'msg': 'JSON decode error', 'input': '<dict of 0 items>', 'ctx': )"
            R"({'error': 'Expecting value'}}","type":"Bad Request","param":"body.10",)"
            R"("code":400}})");
  EXPECT_EQ(refusal(Api::Chat, kVllm, R"({"model":"tiny"})"),
            R"({"error":{"message":"1 validation error:\n  {'type': 'missing', 'loc': )"
            R"('body.messages', 'msg': 'Field required', 'input': '<dict of 1 items>'}","type":)"
            R"("Bad Request","param":"body.messages","code":400}})");
  EXPECT_EQ(refusal(Api::Completions, kVllm, R"({"prompt":"x","temperature":-1})"),
            R"({"error":{"message":"temperature must be non-negative, got -1.0. )"
            R"x((parameter=temperature, value=-1.0)","type":"BadRequestError","param":)x"
            R"("temperature","code":400}})");
  EXPECT_EQ(refusal(Api::Completions, kVllm, R"({"prompt":""})"),
            R"({"error":{"message":"Either prompt or prompt_embeds must be provided and )"
            R"x(non-empty. (parameter=prompt)","type":"BadRequestError","param":"prompt",)x"
            R"("code":400}})");
  EXPECT_TRUE(refusal(Api::Messages, kVllm, "{}").starts_with(R"({"type":"error","error":)"));
}

TEST(RequestJson, LlamaCppRefusesInItsOwnWords) {
  EXPECT_EQ(refusal(Api::Chat, kLlama, "{}"),
            R"({"error":{"code":400,"message":"'messages' is required","type":)"
            R"("invalid_request_error"}})");
  EXPECT_EQ(refusal(Api::Chat, kLlama, R"({"messages":[],"max_tokens":-5})"),
            R"({"error":{"code":400,"message":"Field 'max_tokens': Value must be between -1 <= )"
            R"(value <= 2147483647, but got -5","type":"invalid_request_error"}})");
  EXPECT_EQ(refusal(Api::Chat, kLlama, R"({"messages":[],"max_tokens":"a"})"),
            R"({"error":{"code":400,"message":"Field 'max_tokens': [json.exception.type_error.302])"
            R"( type must be number, but is string","type":"invalid_request_error"}})");
  EXPECT_EQ(refusal(Api::Chat, kLlama, ""),
            R"({"error":{"code":400,"message":"[json.exception.parse_error.101] parse error at )"
            R"(line 1, column 1: attempting to parse an empty input; check that your input string )"
            R"(or stream contains the expected JSON","type":"invalid_request_error"}})");
}

TEST(RequestJson, LlamaCppTakesNoTokensForOneAndMinusOneForNoLimit) {
  EXPECT_EQ(read_generate(Api::Chat, kLlama, R"({"messages":[],"max_tokens":0})")->max_tokens, 1);
  EXPECT_FALSE(read_generate(Api::Chat, kLlama, R"({"messages":[],"max_tokens":-1})")->max_tokens);
}

TEST(RequestJson, WhateverTheBytesThereIsAnAnswer) {
  for (std::string_view body : {"", "[]", "null", "3", "\"x\"", "{\"messages\":3}",
                                "{\"messages\":[3,null,[],{\"content\":{}}]}", "{\"prompt\":{}}",
                                "{\"prompt\":[[[]]]}", "\xff\xfe", "{\"input\":[1]}"})
    for (Api api : {Api::Chat, Api::Completions, Api::Messages, Api::Responses})
      for (Dialect dialect : {kVllm, kLlama}) {
        const auto request = read_generate(api, dialect, body);
        if (!request) {
          EXPECT_EQ(request.error().status, 400) << body;
        }
      }
}

TEST(RequestJson, FaultsAreRead) {
  const auto f = read_fault(R"({"status":503,"retry_after":2,"times":3,"slow":2.5,"refuse":true})");
  ASSERT_TRUE(f);
  EXPECT_EQ(f->fault.status, 503);
  EXPECT_EQ(f->fault.retry_after, 2);
  EXPECT_EQ(f->fault.times, 3);
  EXPECT_EQ(f->slow, 2.5);
  EXPECT_EQ(f->refuse, true);
  EXPECT_FALSE(read_fault(R"({"slow":0})"));
  EXPECT_FALSE(read_fault(R"({"status":200})"));
  EXPECT_EQ(read_fault(R"({"stall_ms":5})")->stall_ms, 5);
  EXPECT_EQ(read_fault(R"({"stall_after_events":1,"stall_ms":5})")->fault.stall_ms, 5);
}

}  // namespace
}  // namespace signalbox::emulator
