// SPDX-License-Identifier: Apache-2.0
// Goal: the events of real engines are read rightly, and broken ones are flagged. Method: recorded
// streams, and payloads by hand for what was not recorded.
#include "io/json/chunk_reader.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "io/json/answer_reader.h"
#include "io/json/edits.h"
#include "io/json/recorded_for_test.inc"

namespace signalbox::json {
namespace {

using model::Api;

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

}  // namespace
}  // namespace signalbox::json
