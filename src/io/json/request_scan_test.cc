// SPDX-License-Identifier: Apache-2.0
// Goal: the scan finds every key that the gateway reads, refuses wrong types, duplicates and
// excess, and says where. Method: bodies by hand for every API.
#include "io/json/request_scan.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace signalbox::json {
namespace {

using model::Api;

struct Scanned {
  explicit Scanned(std::string text, Api api = Api::ChatCompletions, ScanLimits limits = {})
      : body(std::move(text)), result(scan(body, api, limits, out)) {}
  std::string value(Key key) const { return std::string(out.member(key).value.of(body)); }
  std::string message() const { return result ? "" : result.error().message; }

  std::string body;
  RequestScan out;
  Result<void> result;
};

std::string chat(std::string_view extra) {
  return R"({"model":"m","messages":[{"role":"user","content":"hi"}])" + std::string(extra) + "}";
}

TEST(RequestScan, finds_the_keys_of_a_chat_request) {
  const Scanned s(
      R"({ "model" : "llama" , "stream":true,"stream_options":{"include_usage":true},)"
      R"("max_tokens":100,"max_completion_tokens":50,"n":2,"best_of":3,"priority":-4,)"
      R"("cache_salt":"s","user":"u","metadata":{"session":"a","k":1},"prompt_cache_key":"p",)"
      R"("tools":[{"type":"function"},{}],"stop":["a","b"],"logprobs":true,"top_logprobs":5,)"
      R"("messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"yes"}]})");
  ASSERT_TRUE(s.result.has_value()) << s.message();
  EXPECT_EQ(s.out.model, "llama");
  EXPECT_EQ(s.value(Key::Model), R"("llama")");
  EXPECT_EQ(s.body.substr(s.out.member(Key::Model).begin, 7), R"("model")");
  EXPECT_TRUE(s.out.stream);
  EXPECT_EQ(s.value(Key::Stream), "true");
  EXPECT_EQ(s.out.include_usage, IncludeUsage::True);
  EXPECT_EQ(s.out.include_usage_value.of(s.body), "true");
  EXPECT_EQ(s.body[s.out.options_close], '}');
  EXPECT_EQ(s.out.output_max, 50);
  EXPECT_EQ(s.out.n, 2);
  EXPECT_EQ(s.out.best_of, 3);
  EXPECT_EQ(s.out.priority, -4);
  EXPECT_EQ(decode(s.value(Key::CacheSalt)), "s");
  EXPECT_EQ(s.value(Key::User), R"("u")");
  ASSERT_EQ(s.out.metadata.size(), 2u);
  EXPECT_EQ(s.out.metadata[0].key.of(s.body), R"("session")");
  EXPECT_EQ(s.out.metadata[0].value.of(s.body), R"("a")");
  EXPECT_EQ(s.out.metadata[1].value.of(s.body), "1");
  EXPECT_EQ(s.value(Key::PromptCacheKey), R"("p")");
  EXPECT_EQ(s.out.tools, 2);
  EXPECT_EQ(s.out.stops, 2);
  EXPECT_TRUE(s.out.logprobs);
  EXPECT_EQ(s.out.top_logprobs, 5);
  EXPECT_EQ(s.out.messages, 2);
  EXPECT_EQ(s.out.member_count, 17);
  EXPECT_EQ(s.out.close, s.body.size() - 1);
  EXPECT_FALSE(s.out.stateful);
  EXPECT_EQ(s.out.prompt_tokens, -1);
}

TEST(RequestScan, says_nothing_of_what_is_absent_or_null) {
  const Scanned s(chat(R"(,"stream":null,"n":null,"max_tokens":null,"stop":null,"user":null,)"
                       R"("tools":null,"metadata":null,"logit_bias":null,"priority":null)"));
  ASSERT_TRUE(s.result.has_value()) << s.message();
  EXPECT_FALSE(s.out.stream);
  EXPECT_EQ(s.out.n, 1);
  EXPECT_EQ(s.out.output_max, 0);
  EXPECT_EQ(s.out.include_usage, IncludeUsage::NoOptions);
  EXPECT_TRUE(s.out.tool_blocks.empty());
  EXPECT_TRUE(s.out.has(Key::Stream));  // it stands there, as null
  EXPECT_FALSE(s.out.has(Key::BestOf));
}

TEST(RequestScan, tells_the_states_of_stream_options_apart) {
  const auto state = [](std::string_view value) {
    const Scanned s(chat(R"(,"stream_options":)" + std::string(value)));
    EXPECT_TRUE(s.result.has_value()) << s.message();
    return s.out.include_usage;
  };
  EXPECT_EQ(state("null"), IncludeUsage::NullOptions);
  EXPECT_EQ(state("{}"), IncludeUsage::NotGiven);
  EXPECT_EQ(state(R"({"include_obfuscation":false})"), IncludeUsage::NotGiven);
  EXPECT_EQ(state(R"({"include_usage":false})"), IncludeUsage::False);
  EXPECT_EQ(state(R"({"include_usage":null})"), IncludeUsage::False);
  EXPECT_EQ(state(R"({"include_usage":true})"), IncludeUsage::True);
}

TEST(RequestScan, reads_keys_and_values_that_are_spelled_with_escapes) {
  const Scanned s(R"({"mod\u0065l":"\u006d\/x","messages":[{}],"str\u0065am":true})");
  ASSERT_TRUE(s.result.has_value()) << s.message();
  EXPECT_EQ(s.out.model, "m/x");
  EXPECT_TRUE(s.out.stream);
}

TEST(RequestScan, refuses_a_second_key_however_it_is_spelled) {
  for (const auto* extra : {R"(,"model":"n")", R"(,"mod\u0065l":"n")", R"(,"messages":[{}])",
                            R"(,"user":"a","user":"a")", R"(,"n":1,"x":0,"n":1)"}) {
    const Scanned s(chat(extra));
    ASSERT_FALSE(s.result.has_value()) << extra;
    EXPECT_NE(s.message().find("must not be given twice"), std::string::npos) << s.message();
  }
  EXPECT_FALSE(Scanned(chat(R"(,"stream_options":{"include_usage":true,"include_usage":false})"))
                   .result.has_value());
  EXPECT_FALSE(
      Scanned(R"({"model":"m","messages":[{"role":"user","role":"system","content":""}]})")
          .result.has_value());
  EXPECT_FALSE(
      Scanned(R"({"model":"m","messages":[{"role":"user","content":"a","content":"b"}]})")
          .result.has_value());
  EXPECT_TRUE(Scanned(chat(R"(,"x":1,"x":2)")).result.has_value());
}

TEST(RequestScan, takes_whole_numbers_as_engines_do_however_they_are_written) {
  const std::pair<const char*, std::int64_t> cases[] = {
      {"16", 16}, {"16.0", 16}, {"1.6e1", 16}, {"160E-1", 16}, {"1e3", 1000}, {"-0.0", 0},
      {"-1", 0},  // no limit, for llama.cpp
      {"-1.0", 0}, {"0", 0},
  };
  for (const auto& [value, limit] : cases) {
    const Scanned s(chat(std::string(R"(,"max_tokens":)") + value));
    ASSERT_TRUE(s.result.has_value()) << value << s.message();
    EXPECT_EQ(s.out.output_max, limit) << value;
  }
  EXPECT_EQ(Scanned(chat(R"(,"n":2.0)")).out.n, 2);
  EXPECT_EQ(Scanned(chat(R"(,"max_tokens":-1,"max_completion_tokens":9)")).out.output_max, 9);
}

TEST(RequestScan, refuses_wrong_types_with_the_name_of_the_key_and_the_byte) {
  const Scanned s(R"({"model":3,"messages":[{}]})");
  EXPECT_EQ(s.message(), "The key `model` must be a string (byte 9).");
  EXPECT_EQ(s.out.fault, Key::Model);
  const std::pair<const char*, const char*> cases[] = {
      {"stream", "\"yes\""}, {"stream", "1"}, {"stream", "[]"}, {"max_tokens", "-2"},
      {"max_tokens", "1.5"}, {"max_tokens", "1e-3"}, {"max_tokens", "1e400"},
      {"max_tokens", "1e19"}, {"max_tokens", "\"5\""}, {"max_tokens", "99999999999999999999"},
      {"max_tokens", "10000001"}, {"n", "0"},
      {"n", "129"}, {"n", "true"}, {"best_of", "21"}, {"top_logprobs", "21"},
      {"top_logprobs", "-1"}, {"priority", "1.5"}, {"priority", "\"a\""}, {"cache_salt", "5"},
      {"user", "{}"}, {"prompt_cache_key", "[]"}, {"metadata", "[]"}, {"stop", "5"},
      {"stop", "[5]"}, {"tools", "{}"}, {"tools", "[1]"}, {"logit_bias", "[]"},
      {"stream_options", "true"}, {"stream_options", "{\"include_usage\":1}"},
      {"logprobs", "\"a\""},
  };
  for (const auto& [key, value] : cases) {
    const Scanned bad(chat(std::string(",\"") + key + "\":" + value));
    ASSERT_FALSE(bad.result.has_value()) << key << value;
    EXPECT_NE(bad.message().find("`" + std::string(key) + "`"), std::string::npos)
        << bad.message();
    EXPECT_NE(bad.message().find("(byte "), std::string::npos) << bad.message();
  }
  for (const auto* messages : {"{}", "\"a\"", "[]", "[1]", "[\"a\"]", "null", "5"}) {
    EXPECT_FALSE(Scanned(std::string(R"({"model":"m","messages":)") + messages + "}")
                     .result.has_value()) << messages;
  }
}

TEST(RequestScan, a_fault_of_syntax_inside_a_value_is_told_as_one) {
  const Scanned s(chat(R"(,"stream":nope)"));
  EXPECT_NE(s.message().find("not valid JSON"), std::string::npos) << s.message();
  EXPECT_EQ(s.out.fault, Key::None);
}

TEST(RequestScan, refuses_excess) {
  ScanLimits limits;
  limits.messages_max = 2;
  limits.tools_max = 1;
  limits.stop_max = 2;
  limits.stop_bytes_max = 3;
  limits.logit_bias_max = 1;
  limits.metadata_max = 1;
  limits.name_bytes_max = 4;
  const auto ok = [&](std::string body) {
    return Scanned(std::move(body), Api::ChatCompletions, limits).result.has_value();
  };
  EXPECT_TRUE(ok(R"({"model":"abcd","messages":[{},{}]})"));
  EXPECT_FALSE(ok(R"({"model":"abcde","messages":[{},{}]})"));
  EXPECT_FALSE(ok(R"({"model":"","messages":[{},{}]})"));
  EXPECT_FALSE(ok(R"({"model":"abcd","messages":[{},{},{}]})"));
  EXPECT_TRUE(ok(chat(R"(,"tools":[{}],"stop":["abc","d"],"logit_bias":{"5":1})")));
  EXPECT_FALSE(ok(chat(R"(,"tools":[{},{}])")));
  EXPECT_FALSE(ok(chat(R"(,"stop":["a","b","c"])")));
  EXPECT_FALSE(ok(chat(R"(,"stop":"abcd")")));
  EXPECT_FALSE(ok(chat(R"(,"logit_bias":{"5":1,"6":2})")));
  EXPECT_FALSE(ok(chat(R"(,"metadata":{"5":1,"6":2})")));
}

TEST(RequestScan, logprobs_has_a_limit_of_its_own) {
  ScanLimits limits;
  limits.logprobs_max = 5;
  limits.top_logprobs_max = 2;
  const auto ok = [&](std::string_view more, Api api) {
    const std::string prompt = api == Api::Completions ? R"("prompt":"a")" : R"("messages":[{}])";
    return Scanned(R"({"model":"m",)" + prompt + "," + std::string(more) + "}", api, limits)
        .result.has_value();
  };
  EXPECT_TRUE(ok(R"("logprobs":5)", Api::Completions));
  EXPECT_FALSE(ok(R"("logprobs":6)", Api::Completions));
  EXPECT_TRUE(ok(R"("logprobs":true,"top_logprobs":2)", Api::ChatCompletions));
  EXPECT_FALSE(ok(R"("logprobs":true,"top_logprobs":3)", Api::ChatCompletions));
}

TEST(RequestScan, a_schema_of_a_tool_or_an_answer_has_a_depth) {
  ScanLimits limits;
  limits.schema_depth_max = 3;
  const std::string good = R"({"a":{"b":{}}})", bad = R"({"a":{"b":{"c":{}}}})";
  const auto check = [&](const std::string& head, const std::string& tail, Api api) {
    const std::string prompt = api == Api::Completions ? R"("prompt":"a")"
                               : api == Api::Responses ? R"("input":"a")"
                                                       : R"("messages":[{}])";
    const std::string begin = R"({"model":"m",)" + prompt + ",\"" + head;
    EXPECT_TRUE(Scanned(begin + good + tail + "}", api, limits).result.has_value()) << head;
    const Scanned refused(begin + bad + tail + "}", api, limits);
    EXPECT_NE(refused.message().find("schema that is nested more than 3 deep"), std::string::npos)
        << head << ": " << refused.message();
    EXPECT_NE(refused.out.fault, Key::None);
  };
  check(R"(tools":[{"type":"function","function":{"parameters":)", "}}]", Api::ChatCompletions);
  check(R"(functions":[{"parameters":)", "}]", Api::ChatCompletions);
  check(R"(tools":[{"input_schema":)", "}]", Api::Messages);
  check(R"(tools":[{"parameters":)", "}]", Api::Responses);
  check(R"(response_format":{"json_schema":{"schema":)", "}}", Api::ChatCompletions);
  check(R"(text":{"format":{"schema":)", "}}", Api::Responses);
  check(R"(output_format":{"schema":)", "}", Api::Messages);
  check(R"(structured_outputs":{"json":)", "}", Api::Completions);
  check(R"(guided_json":)", "", Api::Completions);
  check(R"(json_schema":)", "", Api::ChatCompletions);
  // Other values may be as deep as the body.
  EXPECT_TRUE(Scanned(chat(R"(,"other":{"a":{"b":{"c":{"d":{"e":{}}}}}})"), Api::ChatCompletions,
                      limits).result.has_value());
}

TEST(RequestScan, requires_the_model_and_what_to_answer) {
  EXPECT_EQ(Scanned(R"({"messages":[{}]})").message(), "The key `model` is required.");
  EXPECT_EQ(Scanned(R"({"model":"m"})").message(), "The key `messages` is required.");
  EXPECT_EQ(Scanned("{}").message(), "The key `model` is required.");
  EXPECT_EQ(Scanned(R"({"model":"m"})", Api::Completions).message(),
            "The key `prompt` is required.");
  EXPECT_EQ(Scanned(R"({"model":"m"})", Api::Embeddings).message(),
            "The key `input` is required.");
  EXPECT_EQ(Scanned(R"({"model":"m"})", Api::Messages).message(),
            "The key `messages` is required.");
  EXPECT_TRUE(Scanned(R"({"model":"m","previous_response_id":"r"})", Api::Responses)
                  .result.has_value());
}

TEST(RequestScan, keys_of_other_apis_pass_unread) {
  EXPECT_TRUE(Scanned(chat(R"(,"prompt":5,"input":{},"system":1,"max_output_tokens":"x")"))
                  .result.has_value());
}

TEST(RequestScan, reads_the_four_forms_of_a_prompt) {
  const auto prompt = [](std::string_view value) {
    return Scanned(R"({"model":"m","prompt":)" + std::string(value) + "}", Api::Completions);
  };
  const Scanned text = prompt(R"("ab")");
  EXPECT_EQ(text.out.inputs, 1);
  EXPECT_EQ(text.out.prompt_tokens, -1);
  EXPECT_EQ(prompt(R"(["a","b"])").out.inputs, 2);
  const Scanned ids = prompt("[1,2, 3]");
  EXPECT_EQ(ids.out.inputs, 1);
  EXPECT_EQ(ids.out.prompt_tokens, 3);
  EXPECT_EQ(ids.out.prompt_bytes, 12);
  const Scanned lists = prompt("[[1,2],[3]]");
  EXPECT_EQ(lists.out.inputs, 2);
  EXPECT_EQ(lists.out.prompt_tokens, 3);
  for (const auto* bad : {"5", "{}", "true", "[1.5]", "[-1]", "[{}]", "[[\"a\"]]", "[true]"}) {
    EXPECT_FALSE(prompt(bad).result.has_value()) << bad;
  }
}

TEST(RequestScan, counts_the_inputs_of_embeddings) {
  const Scanned s(R"({"input":["a","b","c"],"model":"m"})", Api::Embeddings);
  ASSERT_TRUE(s.result.has_value()) << s.message();
  EXPECT_EQ(s.out.inputs, 3);
  EXPECT_EQ(s.out.message_blocks.size(), 3u);
}

TEST(RequestScan, reads_a_messages_request) {
  const Scanned s(R"({"model":"m","max_tokens":7,"system":[{"type":"text","text":"be kind"}],)"
                  R"("stop_sequences":["x"],"metadata":{"user_id":"u"},)"
                  R"("messages":[{"role":"user","content":[{"type":"image","source":)"
                  R"({"type":"base64","media_type":"image/png","data":"AAAA"}}]}]})",
                  Api::Messages);
  ASSERT_TRUE(s.result.has_value()) << s.message();
  EXPECT_EQ(s.out.output_max, 7);
  EXPECT_EQ(s.out.stops, 1);
  EXPECT_TRUE(s.out.has_images);
  EXPECT_EQ(s.out.tool_blocks.size(), 1u);
}

TEST(RequestScan, reads_a_responses_request) {
  const Scanned s(R"({"model":"m","max_output_tokens":9,"instructions":"be kind",)"
                  R"("previous_response_id":"resp_1","input":[{"role":"user","content":"hi"},)"
                  R"({"type":"function_call_output","call_id":"c","output":"42"}]})",
                  Api::Responses);
  ASSERT_TRUE(s.result.has_value()) << s.message();
  EXPECT_EQ(s.out.messages, 2);
  EXPECT_EQ(s.out.output_max, 9);
  EXPECT_TRUE(s.out.stateful);
  EXPECT_EQ(s.out.message_blocks.size(), 2u);
  EXPECT_TRUE(Scanned(R"({"model":"m","input":"hi"})", Api::Responses).result.has_value());
}

TEST(RequestScan, guesses_the_script) {
  const auto script = [](std::string text) {
    std::string body = R"({"model":"m","messages":[{"role":"user","content":")";
    while (body.size() < 500) body += text;
    return Scanned(body + "\"}]}").out.script;
  };
  EXPECT_EQ(script("The engine holds a prefix of many tokens. "), model::Script::Latin);
  EXPECT_EQ(script("Où est le café, s'il vous plaît ? "), model::Script::Latin);
  EXPECT_EQ(script("推論エンジンは多くの接頭辞を保持する。"), model::Script::Cjk);
  EXPECT_EQ(script("Двигатель хранит много токенов. "), model::Script::Other);
  EXPECT_EQ(script("if (a[i] == b) { return f(x); }\\n"), model::Script::Code);
}

TEST(RequestScan, a_reused_object_forgets_the_request_before) {
  RequestScan reused, fresh;
  const std::string rich = chat(R"(,"stream":true,"n":3,"user":"u","metadata":{"a":1},)"
                                R"("tools":[{}],"stop":"x","stream_options":{}, "priority":5)");
  const std::string plain = chat("");
  ASSERT_TRUE(scan(rich, Api::ChatCompletions, {}, reused).has_value());
  ASSERT_TRUE(scan(plain, Api::ChatCompletions, {}, reused).has_value());
  ASSERT_TRUE(scan(plain, Api::ChatCompletions, {}, fresh).has_value());
  EXPECT_EQ(reused.n, 1);
  EXPECT_FALSE(reused.stream);
  EXPECT_FALSE(reused.has(Key::User));
  EXPECT_TRUE(reused.tool_blocks.empty());
  EXPECT_TRUE(reused.metadata.empty());
  EXPECT_EQ(reused.message_blocks.size(), fresh.message_blocks.size());
  EXPECT_EQ(reused.message_blocks[0].hash, fresh.message_blocks[0].hash);
}

TEST(Limits, are_all_described) {
  ScanLimits limits;
  int settings = 0;
  const auto count = [&](auto&, std::string_view, std::string_view, Range range) {
    EXPECT_LT(range.low, range.high);
    ++settings;
  };
  describe(count, limits);
  EXPECT_EQ(settings, 15);
}

}  // namespace
}  // namespace signalbox::json
