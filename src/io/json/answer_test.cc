// SPDX-License-Identifier: Apache-2.0
// Goal: streams and whole answers of real engines are read rightly, and broken ones are flagged.
// Method: recorded bytes of llama.cpp and vLLM, and payloads by hand for what was not recorded.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "io/json/answer_reader.h"
#include "io/json/answer_skeleton.h"
#include "io/json/chat_assembler.h"
#include "io/json/chunk_reader.h"
#include "io/json/edits.h"

namespace signalbox::json {
namespace {

using model::Api;

// The lines of one titled section of a recording, with the recorder's `\n`, `\r` and `\\` undone.
std::vector<std::string> section(const std::string& file, const std::string& title) {
  std::ifstream in(std::string(SIGNALBOX_SOURCE_DIR) + "/testdata/recorded/" + file);
  EXPECT_TRUE(in.good()) << file;
  const bool escaped = file.starts_with("llamacpp");
  std::vector<std::string> lines;
  bool inside = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("===== ") || line.starts_with("##### ")) {
      inside = line.substr(6) == title;
      continue;
    }
    if (!inside) continue;
    std::string text;
    for (std::size_t i = 0; i < line.size(); ++i) {
      const bool pair = escaped && line[i] == '\\' && i + 1 < line.size();
      if (!pair) {
        text += line[i];
      } else if (line[++i] == '\\') {
        text += '\\';
      }  // \n and \r end lines
    }
    lines.push_back(text);
  }
  EXPECT_FALSE(lines.empty()) << title;
  return lines;
}

std::vector<std::string> payloads(const std::string& file, const std::string& title) {
  std::vector<std::string> out;
  for (const std::string& line : section(file, title)) {
    if (line.starts_with("data: ")) out.push_back(line.substr(6));
  }
  EXPECT_FALSE(out.empty()) << title;
  return out;
}

std::string body(const std::string& file, const std::string& title) {
  for (const std::string& line : section(file, title)) {
    if (line.starts_with("{")) return line;
  }
  ADD_FAILURE() << "no body in " << title;
  return {};
}

const std::string kLlama = "llamacpp-wire.txt";
const std::string kVllm = "vllm-0.32-wire.txt";

struct Read {
  Read(Api api, const std::vector<std::string>& all) : reader(api) {
    for (const std::string& payload : all) chunks.push_back(reader.read(payload));
  }
  int contents() const {
    int sum = 0;
    for (const Chunk& c : chunks) sum += c.contents;
    return sum;
  }
  ChunkReader reader;
  std::vector<Chunk> chunks;
};

TEST(ChunkReader, reads_a_recorded_stream_of_llama_cpp_with_usage) {
  const auto all = payloads(kLlama, "chat stream + usage");
  const Read r(Api::ChatCompletions, all);
  ASSERT_EQ(r.chunks.size(), 9u);
  EXPECT_EQ(r.chunks[0].contents, 0);  // the role alone is no token
  EXPECT_EQ(r.chunks[1].contents, 1);
  EXPECT_EQ(r.contents(), 5);
  EXPECT_EQ(r.chunks[6].finishes, 1);
  EXPECT_TRUE(r.chunks[7].usage_only);
  EXPECT_TRUE(r.chunks[8].done);
  EXPECT_EQ(r.reader.finished(), 1);
  EXPECT_EQ(r.chunks[0].model.of(all[0]), R"("smollm2-135m")");
  const auto usage = r.reader.usage();
  EXPECT_EQ(usage.prompt_tokens, 34);
  EXPECT_EQ(usage.cached_tokens, 33);
  EXPECT_EQ(usage.completion_tokens, 5);
  const auto timings = r.reader.timings();
  EXPECT_EQ(timings.prefill_tokens, 1);
  EXPECT_NEAR(to_seconds(timings.prefill), 0.012883, 1e-9);
  EXPECT_NEAR(to_seconds(timings.decode), 0.118394, 1e-9);
  EXPECT_LT(timings.queue.count(), 0);
}

TEST(ChunkReader, takes_usage_from_timings_where_usage_is_not_told) {
  const Read r(Api::ChatCompletions, payloads(kLlama, "chat stream w/o usage, keepalive"));
  EXPECT_EQ(r.reader.usage().prompt_tokens, 34);
  EXPECT_EQ(r.reader.usage().cached_tokens, 33);
  EXPECT_EQ(r.reader.usage().completion_tokens, 3);
  for (const Chunk& c : r.chunks) EXPECT_FALSE(c.usage_only);
}

TEST(ChunkReader, progress_and_role_chunks_are_no_content) {
  const Read r(Api::ChatCompletions, payloads(kLlama, "timings_per_token stream"));
  EXPECT_EQ(r.contents(), 3);
  EXPECT_EQ(r.chunks[0].contents + r.chunks[1].contents + r.chunks[2].contents, 0);
  EXPECT_EQ(r.chunks[3].contents, 1);
}

TEST(ChunkReader, counts_the_ends_of_two_choices_apart) {
  const Read r(Api::ChatCompletions, payloads(kLlama, "n 2 stream"));
  EXPECT_EQ(r.reader.finished(), 2);
  EXPECT_EQ(r.contents(), 4);
}

TEST(ChunkReader, reads_a_text_completion_whose_last_chunk_carries_usage) {
  const Read r(Api::Completions, payloads(kLlama, "v1/completions stream"));
  EXPECT_EQ(r.reader.finished(), 1);
  EXPECT_GT(r.reader.usage().completion_tokens, 0);
  EXPECT_GT(r.contents(), 0);
  for (const Chunk& c : r.chunks) EXPECT_FALSE(c.usage_only || c.malformed);
}

TEST(ChunkReader, reads_recorded_streams_of_vllm) {
  const Read r(Api::ChatCompletions, payloads(kVllm, "chat stream include_usage"));
  EXPECT_EQ(r.contents(), 3);
  EXPECT_EQ(r.reader.finished(), 1);
  EXPECT_EQ(r.chunks[3].contents, 1);  // the last text comes with the finish reason
  EXPECT_EQ(r.chunks[3].finishes, 1);
  EXPECT_TRUE(r.chunks[4].usage_only);
  EXPECT_EQ(r.reader.usage().prompt_tokens, 14);
  EXPECT_EQ(r.reader.usage().completion_tokens, 3);
  EXPECT_EQ(r.reader.usage().cached_tokens, -1);
  const Read c(Api::ChatCompletions, payloads(kVllm, "chat stream continuous_usage_stats"));
  EXPECT_TRUE(c.chunks[0].has_usage);
  EXPECT_FALSE(c.chunks[0].usage_only);
  const Read t(Api::Completions, payloads(kVllm, "completions stream token ids return_token_ids"));
  EXPECT_EQ(t.contents(), 3);
  EXPECT_EQ(t.reader.finished(), 1);
}

Chunk one(Api api, std::string_view payload) { return ChunkReader(api).read(payload); }

TEST(ChunkReader, knows_content_from_empty_deltas) {
  const auto contents = [](std::string_view delta) {
    return one(Api::ChatCompletions,
               R"({"choices":[{"index":0,"delta":)" + std::string(delta) + "}]}").contents;
  };
  EXPECT_EQ(contents("{}"), 0);
  EXPECT_EQ(contents("null"), 0);
  EXPECT_EQ(contents(R"({"role":"assistant","content":""})"), 0);
  EXPECT_EQ(contents(R"({"content":null,"tool_calls":[],"function_call":null})"), 0);
  EXPECT_EQ(contents(R"({"content":"a"})"), 1);
  EXPECT_EQ(contents(R"({"content":" "})"), 1);
  EXPECT_EQ(contents(R"({"content":"\n"})"), 1);
  EXPECT_EQ(contents(R"({"reasoning_content":"a"})"), 1);
  EXPECT_EQ(contents(R"({"reasoning":"a"})"), 1);
  EXPECT_EQ(contents(R"({"refusal":"a"})"), 1);
  EXPECT_EQ(contents(R"({"tool_calls":[{"index":0,"id":"c"}]})"), 1);
  EXPECT_EQ(contents(R"({"function_call":{"name":"f"}})"), 1);
}

TEST(ChunkReader, tells_errors_by_their_truth) {
  const auto error = [](std::string_view value) {
    return one(Api::ChatCompletions, R"({"error":)" + std::string(value) + "}").error;
  };
  EXPECT_TRUE(error(R"({"message":"m"})"));
  EXPECT_TRUE(error(R"("m")"));
  EXPECT_TRUE(error("true"));
  EXPECT_FALSE(error("null"));
  EXPECT_FALSE(error("false"));
  EXPECT_FALSE(error("\"\""));
  EXPECT_FALSE(error("0"));
}

TEST(ChunkReader, gives_the_bytes_of_null_usage_to_cut) {
  for (const std::string payload :
       {R"({"choices":[],"usage":null})", R"({"usage":null,"choices":[]})",
        R"({"usage" : null , "choices":[]})", R"({"a":1 , "usage": null ,"b":2})",
        R"({"usage":null})"}) {
    const Chunk c = one(Api::ChatCompletions, payload);
    ASSERT_TRUE(c.null_usage) << payload;
    EXPECT_FALSE(c.usage_only || c.has_usage);
    Edits edits(payload);
    edits.replace(c.null_usage, "");
    std::string out;
    edits.append_to(out);
    auto expected = nlohmann::json::parse(payload);
    expected.erase("usage");
    EXPECT_EQ(nlohmann::json::parse(out), expected) << out;
  }
  EXPECT_FALSE(one(Api::ChatCompletions, R"({"usage":{"prompt_tokens":1}})").null_usage);
}

TEST(ChunkReader, flags_what_is_no_json_object) {
  for (const auto* bad : {"", " ", "{", "[]", "null", "hello", R"({"a":1}x)", R"({"a":})",
                          R"({"choices":[{"delta":{"content":"a})", R"({"a":"\x"})"}) {
    for (const Api api : {Api::ChatCompletions, Api::Messages, Api::Responses}) {
      EXPECT_TRUE(one(api, bad).malformed) << bad;
    }
  }
  EXPECT_TRUE(one(Api::ChatCompletions, "[DONE]").done);
  EXPECT_TRUE(one(Api::ChatCompletions, "[DONE] ").done);
}

TEST(ChunkReader, values_of_unexpected_types_are_passed_over) {
  const Chunk c = one(Api::ChatCompletions,
                      R"({"choices":{"a":1},"usage":[1],"timings":"x","model":5,"metrics":null})");
  EXPECT_FALSE(c.malformed || c.has_usage || c.usage_only || c.model);
}

TEST(ChunkReader, reads_the_timings_of_vllm) {
  ChunkReader reader(Api::ChatCompletions);
  reader.read(R"({"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":5,)"
              R"("prompt_tokens_details":{"cached_tokens":64}},"metrics":{)"
              R"("time_to_first_token_ms":300.5,"generation_time_ms":500,"queue_time_ms":200.0}})");
  EXPECT_NEAR(to_seconds(reader.timings().queue), 0.2, 1e-9);
  EXPECT_NEAR(to_seconds(reader.timings().prefill), 0.3005, 1e-9);
  EXPECT_NEAR(to_seconds(reader.timings().decode), 0.5, 1e-9);
  EXPECT_EQ(reader.usage().cached_tokens, 64);
}

TEST(ChunkReader, reads_the_events_of_the_messages_api) {
  const Read r(Api::Messages,
               {R"({"type":"message_start","message":{"id":"m","model":"c","usage":)"
                R"({"input_tokens":10,"cache_read_input_tokens":24,)"
                R"("cache_creation_input_tokens":2,"output_tokens":1}}})",
                R"({"type":"content_block_start","index":0,"content_block":)"
                R"({"type":"text","text":""}})",
                R"({"type":"ping"})",
                R"({"type":"content_block_delta","index":0,"delta":)"
                R"({"type":"text_delta","text":"Hi"}})",
                R"({"type":"content_block_delta","index":0,"delta":)"
                R"({"type":"text_delta","text":""}})",
                R"({"type":"content_block_start","index":1,"content_block":)"
                R"({"type":"tool_use","id":"t"}})",
                R"({"index":1,"delta":{"partial_json":"{}","type":"input_json_delta"},)"
                R"("type":"content_block_delta"})",
                R"({"type":"message_delta","delta":{"stop_reason":"end_turn"},)"
                R"("usage":{"output_tokens":12}})",
                R"({"type":"message_stop"})"});
  const std::vector<int> expected = {0, 0, 0, 1, 0, 1, 1, 0, 0};
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(r.chunks[i].contents, expected[i]);
  EXPECT_TRUE(r.chunks[0].model);
  EXPECT_EQ(r.chunks[7].finishes, 1);
  EXPECT_TRUE(r.chunks[8].done);
  EXPECT_EQ(r.reader.finished(), 1);
  EXPECT_EQ(r.reader.usage().prompt_tokens, 36);
  EXPECT_EQ(r.reader.usage().cached_tokens, 24);
  EXPECT_EQ(r.reader.usage().completion_tokens, 12);
  const Chunk error =
      one(Api::Messages, R"({"type":"error","error":{"type":"overloaded_error","message":"m"}})");
  EXPECT_TRUE(error.error);
  EXPECT_TRUE(error.error_value);
}

TEST(ChunkReader, reads_the_events_of_the_responses_api) {
  const Read r(Api::Responses,
               {R"({"type":"response.created","response":{"model":"m","usage":null,"error":null}})",
                R"({"type":"response.output_item.added","item":{}})",
                R"({"type":"response.output_text.delta","delta":"a"})",
                R"({"type":"response.output_text.delta","delta":""})",
                R"({"delta":"x","type":"response.reasoning_text.delta"})",
                R"({"type":"response.output_text.done","text":"a"})",
                R"({"type":"response.completed","response":{"model":"m","usage":)"
                R"({"input_tokens":31,"input_tokens_details":{"cached_tokens":24},)"
                R"("output_tokens":3}}})"});
  const std::vector<int> expected = {0, 0, 1, 0, 1, 0, 0};
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(r.chunks[i].contents, expected[i]);
  EXPECT_FALSE(r.chunks[0].error || r.chunks[0].done);
  EXPECT_TRUE(r.chunks[6].done);
  EXPECT_EQ(r.reader.finished(), 1);
  EXPECT_EQ(r.reader.usage().prompt_tokens, 31);
  EXPECT_EQ(r.reader.usage().cached_tokens, 24);
  EXPECT_EQ(r.reader.usage().completion_tokens, 3);
  EXPECT_TRUE(one(Api::Responses, R"({"type":"error","code":"x","message":"m"})").error);
  EXPECT_TRUE(
      one(Api::Responses, R"({"type":"response.failed","response":{"error":{"code":"x"}}})").error);
}

RC_GTEST_PROP(ChunkReader, never_reads_a_cut_chunk_as_a_whole_one, ()) {
  const std::string whole = payloads(kLlama, "chat stream + usage")[7];
  const auto size = *rc::gen::inRange<std::size_t>(0, whole.size());
  RC_ASSERT(one(Api::ChatCompletions, std::string_view(whole).substr(0, size)).malformed);
}

// Booked as they are, they would be savings that nobody made.
TEST(Usage, more_cached_tokens_than_the_prompt_had_are_not_told) {
  const auto usage = [](Api api, const std::string& members) {
    const std::string text = "{" + members + "}";
    const model::Usage plain = read_answer(api, text).usage;
    const std::string event =
        api == Api::Messages || api == Api::ChatCompletions ? text : R"({"response":)" + text + "}";
    const model::Usage streamed = Read(api, {event}).reader.usage();
    EXPECT_EQ(plain.cached_tokens, streamed.cached_tokens) << text;
    EXPECT_EQ(plain.prompt_tokens, streamed.prompt_tokens) << text;
    return std::pair(plain.prompt_tokens, plain.cached_tokens);
  };
  const auto chat = [&](const std::string& cached) {
    return usage(Api::ChatCompletions, R"("usage":{"prompt_tokens":10,"prompt_tokens_details":)"
                                       R"({"cached_tokens":)" + cached + "}}");
  };
  using Pair = std::pair<std::int64_t, std::int64_t>;
  EXPECT_EQ(chat("10"), Pair(10, 10));
  EXPECT_EQ(chat("11"), Pair(10, -1));
  EXPECT_EQ(chat("999999999"), Pair(10, -1));
  EXPECT_EQ(usage(Api::Responses, R"("usage":{"input_tokens":10,"input_tokens_details":)"
                                  R"({"cached_tokens":11}})"),
            Pair(10, -1));
  EXPECT_EQ(usage(Api::ChatCompletions, R"("usage":{"prompt_tokens":10},"timings":{"cache_n":11})"),
            Pair(10, -1));
  EXPECT_EQ(usage(Api::ChatCompletions, R"("usage":{"prompt_tokens_details":{"cached_tokens":3}})"),
            Pair(-1, -1)) << "of a prompt of unknown length";
  // Anthropic's stand beside the others, so the prompt is their sum.
  EXPECT_EQ(usage(Api::Messages, R"("usage":{"input_tokens":3,"cache_read_input_tokens":30})"),
            Pair(33, 30));
  EXPECT_EQ(usage(Api::Messages, R"("usage":{"cache_read_input_tokens":30})"), Pair(-1, -1));
}

TEST(AnswerReader, reads_recorded_answers) {
  const std::string llama = body(kLlama, "chat nonstream");
  const Answer a = read_answer(Api::ChatCompletions, llama);
  EXPECT_TRUE(a.complete());
  EXPECT_EQ(a.choices, 1);
  EXPECT_EQ(a.model.of(llama), R"("smollm2-135m")");
  EXPECT_EQ(a.usage.prompt_tokens, 34);
  EXPECT_EQ(a.usage.cached_tokens, 24);
  EXPECT_EQ(a.usage.completion_tokens, 8);
  EXPECT_EQ(a.timings.prefill_tokens, 10);
  const Answer two = read_answer(Api::ChatCompletions, body(kVllm, "max_completion_tokens, n=2"));
  EXPECT_TRUE(two.complete());
  EXPECT_EQ(two.choices, 2);
  EXPECT_EQ(two.usage.completion_tokens, 4);
  const Answer messages = read_answer(Api::Messages, body(kLlama, "messages (anthropic)"));
  EXPECT_TRUE(messages.complete());
  EXPECT_EQ(messages.usage.prompt_tokens, 34);
  EXPECT_EQ(messages.usage.cached_tokens, 24);
  const Answer responses = read_answer(Api::Responses, body(kLlama, "responses"));
  EXPECT_TRUE(responses.complete());
  EXPECT_EQ(responses.usage.prompt_tokens, 31);
  EXPECT_EQ(responses.usage.completion_tokens, 3);
  const Answer error = read_answer(Api::ChatCompletions, body(kLlama, "top_logprobs w/o logprobs"));
  EXPECT_TRUE(error.valid && error.error);
  EXPECT_FALSE(error.complete());
}

TEST(AnswerReader, half_an_answer_is_not_valid) {
  const std::string whole = body(kLlama, "chat nonstream");
  for (std::size_t n = 0; n < whole.size(); ++n) {
    ASSERT_FALSE(read_answer(Api::ChatCompletions, std::string_view(whole).substr(0, n)).valid);
  }
}

TEST(AnswerReader, an_answer_without_its_ends_is_not_complete) {
  EXPECT_FALSE(read_answer(Api::ChatCompletions, R"({"choices":[]})").complete());
  EXPECT_FALSE(
      read_answer(Api::ChatCompletions, R"({"choices":[{"finish_reason":null}]})").complete());
  EXPECT_FALSE(read_answer(Api::Messages, R"({"stop_reason":null})").complete());
  EXPECT_TRUE(
      read_answer(Api::Embeddings, R"({"data":[],"usage":{"prompt_tokens":3}})").complete());
  EXPECT_EQ(read_answer(Api::CountTokens, R"({"input_tokens":14})").usage.prompt_tokens, 14);
}

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

TEST(ChunkReader, reads_a_chunk_that_ends_inside_a_surrogate_pair) {
  ChunkReader reader(Api::ChatCompletions);
  const Chunk chunk = reader.read(R"({"choices":[{"delta":{"content":"\ud83d"}}]})");
  EXPECT_FALSE(chunk.malformed);
  EXPECT_EQ(chunk.contents, 1);
}

TEST(ChunkReader, takes_a_cancelled_response_for_an_end) {
  ChunkReader reader(Api::Responses);
  EXPECT_TRUE(reader.read(R"({"type":"response.cancelled","response":{}})").done);
  EXPECT_EQ(reader.finished(), 1);
}

// Fed in pieces of `step` bytes, with the model's name replaced.
std::string passed(AnswerSkeleton& skeleton, std::string_view body, std::size_t step) {
  std::string out;
  for (std::size_t at = 0; at < body.size(); at += step) {
    std::string_view data = body.substr(at, step);
    while (!data.empty()) {
      const bool model = skeleton.in_model();
      const std::size_t size = skeleton.feed(data);
      if (!model) out += data.substr(0, size);
      else if (!skeleton.in_model()) out += "\"asked\"";
      data.remove_prefix(size);
    }
  }
  return out;
}

// The facts of an answer as one line.
std::string facts(const Answer& a) {
  const nlohmann::json all = {
      a.valid, a.error, a.choices, a.finished, a.usage.prompt_tokens, a.usage.cached_tokens,
      a.usage.completion_tokens, a.timings.queue.count(), a.timings.prefill.count(),
      a.timings.decode.count(), a.timings.prefill_tokens};
  return all.dump();
}

constexpr Api kApis[] = {Api::ChatCompletions, Api::Completions, Api::Embeddings,
                         Api::Messages,        Api::CountTokens, Api::Responses};

TEST(AnswerSkeleton, says_of_a_passing_answer_what_the_whole_one_says) {
  const std::string body =
      R"({ "id":"c\"}{", "data":[[1,{"model":"x"}],"]"], "choices":[{"index":0,"message":)"
      R"({"content":"a\\","model":"y","finish_reason":"z"},"finish_reason":"stop"},)"
      R"({"finish_reason":null}, {"finish_reason":"length"}], "model" : "o\"wn", "error":null,)"
      R"("usage":{"prompt_tokens":777,"prompt_tokens_details":{"cached_tokens":5},)"
      R"("completion_tokens":8},"timings":{"prompt_ms":1.5}})";
  const Answer whole = read_answer(Api::ChatCompletions, body);
  ASSERT_TRUE(whole.valid);
  EXPECT_EQ(whole.choices, 3);
  EXPECT_EQ(whole.finished, 2);
  EXPECT_EQ(whole.usage.prompt_tokens, 777);
  std::string renamed = body;
  renamed.replace(renamed.find(R"("o\"wn")"), 7, R"("asked")");
  for (std::size_t step = 1; step <= body.size(); ++step) {
    AnswerSkeleton skeleton(Api::ChatCompletions);
    EXPECT_EQ(passed(skeleton, body, step), renamed) << step;
    ASSERT_EQ(facts(skeleton.answer()), facts(whole)) << step;
  }
}

TEST(AnswerSkeleton, says_of_recorded_answers_of_every_api_what_the_whole_ones_say) {
  const std::vector<std::pair<Api, std::string>> answers = {
      {Api::ChatCompletions, body(kLlama, "chat nonstream")},
      {Api::ChatCompletions, body(kLlama, "top_logprobs w/o logprobs")},
      {Api::ChatCompletions, body(kVllm, "max_completion_tokens, n=2")},
      {Api::Completions, body(kLlama, "v1/completions nonstream")},
      {Api::Completions, body(kVllm, "completions list of 2 prompts n=1")},
      {Api::Embeddings, body(kLlama, "embeddings")},
      {Api::Messages, body(kLlama, "messages (anthropic)")},
      {Api::CountTokens, body(kLlama, "input_tokens")},
      {Api::Responses, body(kLlama, "responses")}};
  for (const auto& [api, text] : answers) {
    const Answer whole = read_answer(api, text);
    ASSERT_TRUE(whole.valid) << text;
    for (std::size_t step = 1; step <= text.size(); ++step) {
      AnswerSkeleton skeleton(api);
      EXPECT_FALSE(passed(skeleton, text, step).empty());
      ASSERT_EQ(facts(skeleton.answer()), facts(whole)) << text << ' ' << step;
    }
  }
}

// An object of members that count in some API, with the values that they may have and others.
std::string any_answer() {
  const std::vector<std::string> keys = {
      "choices", "usage", "timings", "metrics", "model",        "error",
      "status",  "id",    "data",    "output",  "input_tokens", "stop_reason"};
  const std::vector<std::string> values = {
      R"("completed")", R"("failed")", R"("")", R"("end_turn")", "null", "false", "0", "7", "[]",
      R"({"prompt_tokens":1,"output_tokens":3,"input_tokens_details":{"cached_tokens":1}})",
      R"({"input_tokens":9,"cache_read_input_tokens":4,"completion_tokens":5})",
      R"({"cache_n":1,"prompt_n":2,"predicted_n":3,"prompt_ms":4.5,"predicted_ms":6})",
      R"({"queue_time_ms":1,"time_to_first_token_ms":2,"generation_time_ms":3})",
      R"([{"finish_reason":"stop"},{"finish_reason":""},{"finish_reason":"","x":[{}]},3,"s"])",
      R"([{"message":{"finish_reason":"a"},"finish_reason":null},[{"finish_reason":"b"}],["c"]])",
      R"([{"finish_reason":"\"","finish_reason":"","z":"}"},{"finish_reason":["stop"]}])"};
  std::string out = "{";
  const auto count = *rc::gen::inRange(0, 8);
  for (int i = 0; i < count; ++i) {
    if (i != 0) out += ", ";
    out += '"' + *rc::gen::elementOf(keys) + "\":" + *rc::gen::elementOf(values);
  }
  return out + "}";
}

RC_GTEST_PROP(AnswerSkeleton, says_of_any_answer_what_the_whole_one_says, ()) {
  const std::string text = any_answer();
  const Api api = *rc::gen::elementOf(std::vector<Api>(std::begin(kApis), std::end(kApis)));
  const auto step = *rc::gen::inRange<std::size_t>(1, text.size() + 1);
  AnswerSkeleton skeleton(api);
  RC_ASSERT(!passed(skeleton, text, step).empty());
  RC_ASSERT(read_answer(api, text).valid);
  RC_ASSERT(facts(skeleton.answer()) == facts(read_answer(api, text)));
}

// As vLLM writes it.
std::string completion_of(int choices, const std::string& last_reason) {
  std::string out = R"({"id":"cmpl-1","object":"text_completion","choices":[)";
  for (int i = 0; i < choices; ++i) {
    if (i != 0) out += ',';
    out += R"({"index":)" + std::to_string(i) + R"(,"text":"a","logprobs":null,"finish_reason":)" +
           (i + 1 < choices ? R"("length")" : last_reason) +
           R"(,"stop_reason":null,"prompt_logprobs":null})";
  }
  return out + R"(],"model":"own","usage":{"prompt_tokens":777,"completion_tokens":888}})";
}

TEST(AnswerSkeleton, has_room_for_any_number_of_choices) {
  constexpr int kChoices = 2048 * 16;
  AnswerSkeleton skeleton(Api::Completions);
  const std::string out = passed(skeleton, completion_of(kChoices, R"("stop")"), 16384);
  EXPECT_TRUE(out.ends_with(
      R"("model":"asked","usage":{"prompt_tokens":777,"completion_tokens":888}})"));
  const Answer answer = skeleton.answer();
  EXPECT_TRUE(answer.complete());
  EXPECT_EQ(answer.choices, kChoices);
  EXPECT_EQ(answer.usage.prompt_tokens, 777);
  EXPECT_EQ(answer.usage.completion_tokens, 888);
  AnswerSkeleton half(Api::Completions);
  passed(half, completion_of(kChoices, "null"), 16384);
  EXPECT_EQ(half.answer().finished, kChoices - 1);
}

TEST(AnswerSkeleton, without_room_tells_a_whole_answer_from_a_broken_one_and_still_renames) {
  const std::string large = R"({"metrics":")" + std::string(AnswerSkeleton::kRoom, 'm') + '"';
  const std::string rest = R"(,"model":"own","usage":{"prompt_tokens":7})";
  for (const Api api : kApis) {
    AnswerSkeleton skeleton(api);
    const std::string choices = R"(,"choices":[{"finish_reason":"stop"}])";
    EXPECT_TRUE(passed(skeleton, large + rest + choices + "}", 5000).ends_with(
        R"(,"model":"asked","usage":{"prompt_tokens":7})" + choices + "}"));
    EXPECT_TRUE(skeleton.answer().complete());
    EXPECT_EQ(skeleton.answer().usage.prompt_tokens, -1);
    for (const std::string_view end : {"", "]", "}}", "} {}", R"(,"a)"}) {
      AnswerSkeleton broken(api);
      passed(broken, large + rest + std::string(end), 5000);
      EXPECT_FALSE(broken.answer().valid) << end;
    }
  }
  AnswerSkeleton unfinished(Api::ChatCompletions);
  passed(unfinished, large + R"(,"choices":[{"finish_reason":null}]})", 5000);
  EXPECT_TRUE(unfinished.answer().valid);
  EXPECT_FALSE(unfinished.answer().complete());
}

TEST(AnswerSkeleton, is_none_of_a_broken_answer) {
  for (const std::string_view body : {"", R"({"a":[1})", R"({"a":1)", R"({"a":"1)", "x", "]",
                                      "[{}]", "{}{}", R"({"a":1 "b":2})"}) {
    AnswerSkeleton skeleton(Api::Embeddings);
    skeleton.feed(body);
    EXPECT_FALSE(skeleton.answer().valid) << body;
  }
}

}  // namespace
}  // namespace signalbox::json
