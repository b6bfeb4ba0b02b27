// SPDX-License-Identifier: Apache-2.0
// The language of the emulated models: every token is four bytes, and the next one, or the end, is
// a function of (seed, text so far) alone. So engines agree, a partial answer can be continued, and
// a checker can know every byte. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace signalbox::emulator {

constexpr std::size_t kTokenBytes = 4;
constexpr std::size_t kChunkBytes = 64;  // what one link of the block chain covers: 16 tokens

// Tokens of a text, whatever is in it.
constexpr std::int64_t token_count(std::string_view text) {
  return static_cast<std::int64_t>((text.size() + kTokenBytes - 1) / kTokenBytes);
}

// A text as it grows: an identity of all its bytes, and a chain of hashes of its beginnings.
class TextState {
 public:
  void append(std::string_view bytes);
  // Depends on the bytes alone, not on how they were appended.
  std::uint64_t identity() const;
  // chain()[i] stands for the first (i + 1) · kChunkBytes bytes.
  const std::vector<std::uint64_t>& chain() const { return chain_; }
  std::size_t size() const { return chain_.size() * kChunkBytes + tail_.size(); }
  // Whether it ends with a word of the vocabulary: an answer ends only behind one.
  bool ends_with_word() const;

 private:
  void link(const char* chunk);

  std::vector<std::uint64_t> chain_;
  std::string tail_;       // bytes behind the last link
  std::string last_four_;  // the last kTokenBytes bytes, or fewer
};

// The identity of a whole text.
std::uint64_t text_identity(std::string_view text);

// One word of the vocabulary: exactly four bytes, plain and as it stands in a JSON string.
struct Word {
  std::string_view text;
  std::string json;
};
const std::vector<Word>& vocabulary();

enum class Finish : std::uint8_t {
  Stop,    // the model ended, or a stop string was met
  Length,  // the limit cut it
};

struct AnswerRule {
  std::uint64_t seed = 1;
  std::int64_t tokens_mean = 128;   // of an answer that nothing cuts short
  std::int64_t tokens_max = 1;      // >= 1
  std::int64_t tokens_min = 0;      // no end before
  bool ignore_end = false;          // only tokens_max and stops end it
  std::vector<std::string> stops;   // strings at whose first occurrence the text is cut
};

struct Answer {
  std::string text;
  std::int64_t tokens = 0;  // generated, the invisible end token included; >= 1
  Finish finish = Finish::Length;
  int stop = -1;            // index of the stop string that cut it
  // Bytes of the k-th token, k from 1; empty for the end token.
  std::string_view piece(std::int64_t k) const;
};

// The answer behind `state`, which afterwards holds the answer too.
Answer generate(TextState& state, const AnswerRule& rule);

// What an engine with this seed answers to a rendered text: for checkers.
Answer expected_answer(std::uint64_t seed, std::string_view rendered, std::int64_t max_tokens);

// `text` as the inside of a JSON string, UTF-8 left as it is; appended to `out`.
void append_json(std::string& out, std::string_view text);

// Token ids: the bytes of a token as a little-endian number, so that ids turn back into text.
std::vector<std::uint32_t> token_ids(std::string_view text);
void append_token(std::string& out, std::uint32_t id);

}  // namespace signalbox::emulator
