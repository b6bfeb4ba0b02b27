// SPDX-License-Identifier: Apache-2.0
// Goal: prompt blocks depend on the meaning of a body and on nothing else, and a conversation that
// grows keeps its blocks. Method: RapidCheck draws conversations and spells each in many ways
// (white space, escapes, order of keys); laws compare the blocks.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "io/json/block_encoder.h"
#include "io/json/request_scan.h"

namespace signalbox::json {
namespace {

using Json = nlohmann::ordered_json;
using model::Api;

// Writes a value with random white space and random spelling of each character of strings.
class Speller {
 public:
  explicit Speller(std::uint64_t seed) : state_(seed | 1) {}

  std::string write(const Json& value, int shuffle_depth) {
    out_.clear();
    put(value, 0, shuffle_depth);
    return out_;
  }

 private:
  std::uint64_t draw(std::uint64_t bound) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return (state_ >> 33) % bound;
  }
  void space() {
    while (draw(4) == 0) out_ += " \n\t\r"[draw(4)];
  }
  void hex(unsigned code) {
    char text[8];
    std::snprintf(text, sizeof text, draw(2) == 0 ? "\\u%04x" : "\\u%04X", code);
    out_ += text;
  }
  void string(const std::string& text) {
    out_ += '"';
    const std::uint64_t escapes = draw(3) == 0 ? 2 : 1000;  // few strings are mostly escapes
    for (std::size_t i = 0; i < text.size();) {
      const auto c = static_cast<unsigned char>(text[i]);
      const std::size_t size = c < 0x80 ? 1 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
      if (c < 0x20 || c == '"' || c == '\\' || draw(escapes) == 0) {
        escape(text, i, size);
      } else {
        out_.append(text, i, size);
      }
      i += size;
    }
    out_ += '"';
  }
  void escape(const std::string& text, std::size_t at, std::size_t size) {
    unsigned code = static_cast<unsigned char>(text[at]);
    if (size == 2) code &= 0x1F;
    if (size == 3) code &= 0x0F;
    if (size == 4) code &= 0x07;
    for (std::size_t i = 1; i < size; ++i) {
      code = code << 6 | (static_cast<unsigned char>(text[at + i]) & 0x3F);
    }
    if (code == '\n' && draw(2) == 0) {
      out_ += "\\n";
    } else if (code == '"' && draw(2) == 0) {
      out_ += "\\\"";
    } else if (code == '/' && draw(2) == 0) {
      out_ += "\\/";
    } else if (code >= 0x10000) {
      hex(0xD800 + ((code - 0x10000) >> 10));
      hex(0xDC00 + ((code - 0x10000) & 0x3FF));
    } else {
      hex(code);
    }
  }
  void put(const Json& value, int depth, int shuffle_depth) {
    space();
    if (value.is_object()) {
      // Keys may change places in the body and in a message, not below.
      std::vector<std::string> keys;
      for (const auto& [key, item] : value.items()) keys.push_back(key);
      if (depth == 0 || depth == shuffle_depth) {
        for (std::size_t i = keys.size(); i > 1; --i) std::swap(keys[i - 1], keys[draw(i)]);
      }
      out_ += '{';
      for (std::size_t i = 0; i < keys.size(); ++i) {
        if (i > 0) out_ += ',';
        space();
        string(keys[i]);
        space();
        out_ += ':';
        put(value[keys[i]], depth + 1, keys[i] == "messages" ? 2 : -1);
      }
      out_ += '}';
    } else if (value.is_array()) {
      out_ += '[';
      for (std::size_t i = 0; i < value.size(); ++i) {
        if (i > 0) out_ += ',';
        put(value[i], depth + 1, shuffle_depth);
      }
      space();
      out_ += ']';
    } else if (value.is_string()) {
      string(value.get<std::string>());
    } else {
      out_ += value.dump();
    }
    space();
  }

  std::uint64_t state_;
  std::string out_;
};

std::string draw_text() {
  static const std::vector<std::string> kBits = {"the ", "prefix\n", "\"", "\\", "é", "€", "😀",
                                                 "\t", "0", "{", "a/b", "x"};
  const auto picks =
      *rc::gen::container<std::vector<std::size_t>>(rc::gen::inRange<std::size_t>(0, 12));
  std::string text;
  for (const std::size_t i : picks) text += kBits[i];
  const int repeat = *rc::gen::weightedElement<int>({{6, 1}, {2, 50}, {1, 400}});
  std::string out;
  for (int i = 0; i < repeat; ++i) out += text;
  return out;
}

Json draw_message() {
  Json message = Json::object();
  message["role"] = *rc::gen::element<std::string>("system", "user", "assistant", "tool");
  if (*rc::gen::arbitrary<bool>()) message["type"] = "message";
  switch (*rc::gen::inRange(0, 4)) {
    case 0: message["content"] = draw_text(); break;
    case 1: message["content"] = {{{"type", "text"}, {"text", draw_text()}},
                                  {{"type", "image_url"}, {"image_url", {{"url", draw_text()}}}}};
      break;
    case 2:
      message["content"] = nullptr;
      message["tool_calls"] = {
          {{"id", "c1"}, {"function", {{"name", "f"}, {"arguments", draw_text()}}}}};
      break;
    default:
      message["content"] = draw_text();
      message["tool_call_id"] = "c1";
      message["name"] = "f";
      message["reasoning_content"] = draw_text();
      message["zeta"] = {1, 2.5, true, nullptr};
  }
  return message;
}

Json draw_chat() {
  Json body = {{"model", "m"}, {"stream", true}, {"messages", Json::array()}};
  const int messages = *rc::gen::inRange(1, 5);
  for (int i = 0; i < messages; ++i) body["messages"].push_back(draw_message());
  if (*rc::gen::arbitrary<bool>()) {
    body["tools"] = {
        {{"type", "function"}, {"function", {{"name", "f"}, {"description", draw_text()}}}}};
  }
  if (*rc::gen::arbitrary<bool>()) body["chat_template_kwargs"] = {{"thinking", true}};
  if (*rc::gen::arbitrary<bool>()) body["functions"] = {{{"name", draw_text()}}};
  return body;
}

struct Blocks {
  std::vector<std::uint64_t> tools, messages;
  bool operator==(const Blocks&) const = default;
};

Blocks blocks_of(const std::string& body, Api api = Api::ChatCompletions) {
  RequestScan out;
  const auto result = scan(body, api, {}, out);
  if (!result) ADD_FAILURE() << result.error().message << "\n" << body;
  Blocks blocks;
  std::int64_t bytes = 0;
  for (const auto& b : out.tool_blocks) blocks.tools.push_back(b.hash), bytes += b.bytes;
  for (const auto& b : out.message_blocks) blocks.messages.push_back(b.hash), bytes += b.bytes;
  EXPECT_EQ(bytes, out.prompt_bytes);
  return blocks;
}

bool begins_with(const std::vector<std::uint64_t>& whole, const std::vector<std::uint64_t>& part) {
  return part.size() <= whole.size() && std::equal(part.begin(), part.end(), whole.begin());
}

RC_GTEST_PROP(PromptBlocks, do_not_depend_on_spelling_or_order_of_keys, ()) {
  const Json body = draw_chat();
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  RC_ASSERT(blocks_of(body.dump()) == blocks_of(Speller(seed).write(body, -1)));
}

RC_GTEST_PROP(PromptBlocks, of_a_longer_conversation_begin_with_those_of_the_shorter, ()) {
  Json body = draw_chat();
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const Blocks before = blocks_of(Speller(seed).write(body, -1));
  body["messages"].push_back(draw_message());
  const Blocks after = blocks_of(Speller(seed + 2).write(body, -1));
  RC_ASSERT(before.tools == after.tools);
  RC_ASSERT(begins_with(after.messages, before.messages));
  RC_ASSERT(after.messages.size() > before.messages.size());
}

RC_GTEST_PROP(PromptBlocks, change_where_a_message_changes_and_not_before, ()) {
  Json body = draw_chat();
  const auto at = *rc::gen::inRange<std::size_t>(0, body["messages"].size());
  const Blocks before = blocks_of(body.dump());
  Json shorter = body;
  shorter["messages"].erase(shorter["messages"].begin() + static_cast<std::ptrdiff_t>(at),
                            shorter["messages"].end());
  body["messages"][at]["content"] = "something else entirely";
  const Blocks after = blocks_of(body.dump());
  RC_ASSERT(before.messages != after.messages);
  if (at == 0) return;
  const Blocks common = blocks_of(shorter.dump());
  RC_ASSERT(begins_with(before.messages, common.messages));
  RC_ASSERT(begins_with(after.messages, common.messages));
}

std::string long_chat(std::size_t bytes) {
  return R"({"model":"m","messages":[{"role":"user","content":")" + std::string(bytes, 'a') +
         "\"}]}";
}

TEST(PromptBlocks, are_cut_after_2048_bytes_and_at_the_end_of_a_message) {
  RequestScan out;
  const std::string body = long_chat(5000);
  ASSERT_TRUE(scan(body, Api::ChatCompletions, {}, out).has_value());
  ASSERT_EQ(out.message_blocks.size(), 3u);
  EXPECT_EQ(out.message_blocks[0].bytes, kBlockBytes);
  EXPECT_EQ(out.message_blocks[1].bytes, kBlockBytes);
  EXPECT_LT(out.message_blocks[2].bytes, kBlockBytes);
  // The structure costs a few bytes beside the 5,000.
  EXPECT_GE(out.prompt_bytes, 5000);
  EXPECT_LE(out.prompt_bytes, 5030);
}

TEST(PromptBlocks, of_every_length_are_the_same_escaped_and_plain) {
  for (std::size_t size = 1990; size < 2080; ++size) {
    std::string escaped = long_chat(size);
    escaped.replace(escaped.rfind('a'), 1, "\\u0061");
    escaped.replace(escaped.find("aa"), 1, "\\u0061");
    EXPECT_EQ(blocks_of(long_chat(size)), blocks_of(escaped)) << size;
  }
}

TEST(PromptBlocks, differ_when_role_structure_or_tools_differ) {
  const auto chat = [](const char* rest) {
    return blocks_of(std::string(R"({"model":"m",)") + rest + "}");
  };
  const Blocks base = chat(R"("messages":[{"role":"user","content":"ab"}])");
  EXPECT_NE(base, chat(R"("messages":[{"role":"system","content":"ab"}])"));
  EXPECT_NE(base, chat(R"("messages":[{"role":"user","content":"a"},)"
                       R"({"role":"user","content":"b"}])"));
  EXPECT_NE(base, chat(R"("messages":[{"role":"user","content":["a","b"]}])"));
  EXPECT_NE(base, chat(R"("messages":[{"role":"user","content":"ab","name":"x"}])"));
  EXPECT_NE(base, chat(R"("tools":[{}],"messages":[{"role":"user","content":"ab"}])"));
  EXPECT_EQ(base, chat(R"("tools":[],"messages":[{"role":"user","content":"ab"}])"));
  EXPECT_EQ(base, chat(R"("temperature":1,"messages":[{"role":"user","content":"ab"}])"));
  EXPECT_NE(chat(R"("tools":[{"a":"b"}],"messages":[{}])"),
            chat(R"("tools":[{"a":["b"]}],"messages":[{}])"));
  EXPECT_NE(chat(R"("messages":[{"x":"1"}])"), chat(R"("messages":[{"x":1}])"));
  EXPECT_NE(chat(R"("messages":[{"x":"ab"}])"), chat(R"("messages":[{"xa":"b"}])"));
}

TEST(PromptBlocks, put_the_role_first_wherever_it_stands) {
  const auto input = [](const char* item) {
    return blocks_of(std::string(R"({"model":"m","input":[)") + item + "]}", Api::Responses);
  };
  const Blocks usual = input(R"({"type":"message","role":"user","content":"hi"})");
  EXPECT_EQ(usual, input(R"({"type":"message","content":"hi","role":"user"})"));
  EXPECT_EQ(usual, input(R"({"content":"hi","role":"user","type":"message"})"));
  EXPECT_NE(usual, input(R"({"type":"message","content":"hi"})"));
}

TEST(PromptBlocks, ignore_cache_marks_that_agents_move_from_turn_to_turn) {
  const auto messages = [](const char* list) {
    return blocks_of(std::string(R"({"model":"m","max_tokens":5,"messages":)") + list + "}",
                     Api::Messages);
  };
  const Blocks plain = messages(R"([{"role":"user","content":"hello"}])");
  EXPECT_EQ(plain, messages(R"([{"role":"user","content":[{"type":"text","text":"hello"}]}])"));
  EXPECT_EQ(plain, messages(R"([{"role":"user","content":[{"type":"text","text":"hello",)"
                            R"("cache_control":{"type":"ephemeral"}}]}])"));
  const Blocks grown = messages(R"([{"role":"user","content":"hello"},{"role":"assistant",)"
                                R"("content":[{"type":"text","text":"hi"}]}])");
  EXPECT_TRUE(begins_with(grown.messages, plain.messages));
}

TEST(PromptBlocks, count_an_image_as_a_few_bytes_and_tell_images_apart) {
  const auto with = [](const std::string& url) {
    return R"({"model":"m","messages":[{"role":"user","content":[{"type":"image_url",)"
           R"("image_url":{"url":")" + url + "\"}}]}]}";
  };
  RequestScan out;
  const std::string body = with("data:image/png;base64," + std::string(100000, 'A'));
  ASSERT_TRUE(scan(body, Api::ChatCompletions, {}, out).has_value());
  EXPECT_TRUE(out.has_images);
  EXPECT_LT(out.prompt_bytes, 200);
  EXPECT_NE(blocks_of(body), blocks_of(with("data:image/png;base64," + std::string(99999, 'A'))));
  EXPECT_EQ(blocks_of(with("http://a/b")), blocks_of(with("http:\\/\\/a\\/b")));
}

TEST(PromptBlocks, keep_the_text_of_documents) {
  RequestScan out;
  const std::string body =
      R"({"model":"m","messages":[{"role":"user","content":[{"type":"document","source":)"
      R"({"type":"text","media_type":"text/plain","data":")" + std::string(3000, 'x') + "\"}}]}]}";
  ASSERT_TRUE(scan(body, Api::Messages, {}, out).has_value());
  EXPECT_GT(out.prompt_bytes, 3000);
  EXPECT_FALSE(out.has_images);
}

TEST(PromptBlocks, of_a_plain_prompt_are_the_same_alone_and_in_a_list) {
  const auto prompt = [](const char* value) {
    return blocks_of(std::string(R"({"model":"m","prompt":)") + value + "}", Api::Completions);
  };
  EXPECT_EQ(prompt(R"("abc")"), prompt(R"(["abc"])"));
  EXPECT_EQ(prompt("[1,2]"), prompt("[[1,2]]"));
  EXPECT_NE(prompt("[1,2]"), prompt("[1,3]"));
}

TEST(PromptBlocks, stand_in_one_order_for_system_and_tools) {
  const auto body = [](const char* rest) {
    return blocks_of(std::string(R"({"model":"m",)") + rest + "}", Api::Messages);
  };
  EXPECT_EQ(body(R"("system":"s","tools":[{"name":"t"}],"messages":[{}])"),
            body(R"("messages":[{}],"tools":[{"name":"t"}],"system":"s")"));
}

}  // namespace
}  // namespace signalbox::json
