// SPDX-License-Identifier: Apache-2.0
// Goal: the language is a function of seed and text, continues where it was cut, and counts right.
// Method: laws over random texts and cuts.
#include "emulator/text.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

namespace signalbox::emulator {
namespace {

TEST(Text, EveryWordHasFourBytesAndIsDistinct) {
  std::set<std::string_view> seen;
  for (const Word& word : vocabulary()) {
    EXPECT_EQ(word.text.size(), kTokenBytes);
    EXPECT_TRUE(seen.insert(word.text).second) << word.text;
  }
  EXPECT_GT(seen.size(), 100u);
}

TEST(Text, AnswersDifferBySeedAndByPrompt) {
  const Answer a = expected_answer(1, "<|im_start|>user\nHi", 20);
  EXPECT_EQ(a.text, expected_answer(1, "<|im_start|>user\nHi", 20).text);
  EXPECT_NE(a.text, expected_answer(2, "<|im_start|>user\nHi", 20).text);
  EXPECT_NE(a.text, expected_answer(1, "<|im_start|>user\nHo", 20).text);
}

TEST(Text, TheEndTokenCountsAndHasNoText) {
  for (int i = 0;; ++i) {
    const Answer a = expected_answer(1, "prompt " + std::to_string(i), 10000);
    ASSERT_EQ(a.finish, Finish::Stop);
    EXPECT_EQ(a.tokens, token_count(a.text) + 1);
    EXPECT_EQ(a.piece(a.tokens), "");
    EXPECT_NE(a.piece(1), "");
    if (i == 20) break;
  }
}

TEST(Text, TheMeanLengthIsTheOneAsked) {
  double sum = 0;
  for (int i = 0; i < 2000; ++i) {
    TextState state;
    state.append("question " + std::to_string(i));
    AnswerRule rule;
    rule.tokens_mean = 50;
    rule.tokens_max = 100000;
    sum += static_cast<double>(generate(state, rule).tokens);
  }
  EXPECT_NEAR(sum / 2000, 51, 5);
}

TEST(Text, AStopStringCutsTheTextBeforeItself) {
  const Answer whole = expected_answer(1, "tell", 60);
  TextState state;
  state.append("tell");
  AnswerRule rule;
  rule.tokens_max = 60;
  rule.stops = {"never there", whole.text.substr(10, 6)};
  const Answer cut = generate(state, rule);
  EXPECT_EQ(cut.text, whole.text.substr(0, 10));
  EXPECT_EQ(cut.stop, 1);
  EXPECT_EQ(cut.finish, Finish::Stop);
  EXPECT_EQ(cut.tokens, 4);  // 16 bytes had to be made to see it
}

TEST(Text, IgnoringTheEndFillsTheLimit) {
  TextState state;
  state.append("go on");
  AnswerRule rule;
  rule.tokens_max = 3000;
  rule.ignore_end = true;
  const Answer a = generate(state, rule);
  EXPECT_EQ(a.tokens, 3000);
  EXPECT_EQ(a.text.size(), 3000 * kTokenBytes);
}

TEST(Text, JsonEscapesWhatItMust) {
  std::string out;
  append_json(out, "a\"b\\c\n\t\x01\xC3\xA9");
  EXPECT_EQ(out, "a\\\"b\\\\c\\n\\t\\u0001\xC3\xA9");
}

RC_GTEST_PROP(TextLaws, APartialAnswerIsContinuedToTheSameText, (const std::string& prompt)) {
  const auto limit = *rc::gen::inRange<std::int64_t>(1, 400);
  const Answer whole = expected_answer(3, prompt, limit);
  const auto cut = *rc::gen::inRange<std::size_t>(
      0, static_cast<std::size_t>(token_count(whole.text)) + 1);
  const std::string partial = whole.text.substr(0, cut * kTokenBytes);
  const auto left = limit - static_cast<std::int64_t>(cut);
  if (left == 0) return;
  const Answer rest = expected_answer(3, prompt + partial, left);
  RC_ASSERT(partial + rest.text == whole.text);
  RC_ASSERT(rest.finish == whole.finish);
  RC_ASSERT(rest.tokens + static_cast<std::int64_t>(cut) == whole.tokens);
}

RC_GTEST_PROP(TextLaws, IdentityDependsOnTheBytesAlone, (const std::string& text)) {
  const std::string longer = text + text + text + std::string(70, 'x') + text;
  TextState whole, pieces;
  whole.append(longer);
  for (std::size_t i = 0; i < longer.size();) {
    const auto step = *rc::gen::inRange<std::size_t>(1, 90);
    pieces.append(std::string_view(longer).substr(i, step));
    i += step;
  }
  RC_ASSERT(whole.identity() == pieces.identity());
  RC_ASSERT(whole.chain() == pieces.chain());
  RC_ASSERT(whole.chain().size() == longer.size() / kChunkBytes);
}

RC_GTEST_PROP(TextLaws, TokenIdsTurnBackIntoText, (const std::vector<std::uint8_t>& bytes)) {
  std::string text;
  for (const std::uint8_t b : bytes) text += static_cast<char>(b == 0 ? 1 : b);
  std::string back;
  for (const std::uint32_t id : token_ids(text)) append_token(back, id);
  RC_ASSERT(back == text);
  RC_ASSERT(static_cast<std::int64_t>(token_ids(text).size()) == token_count(text));
}

}  // namespace
}  // namespace signalbox::emulator
