// SPDX-License-Identifier: Apache-2.0
// The vocabulary, the chain and the draw of the next word.
#include "emulator/text.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <unordered_set>

#include "base/check.h"

namespace signalbox::emulator {
namespace {

// Three letters behind a blank, and a few tokens that are hard to carry: quotes, backslashes,
// line ends, accents, CJK, emoji.
constexpr std::string_view kWords =
    " the and for are but not you all any can had her was one our out day get has him his how man"
    " new now old see two way who boy did its let put say she too use air arm art ask bad bag bar"
    " bed bit box bus buy car cat cup cut dog dry ear eat egg end eye far fat few fit fly fun gas"
    " gun hat hit hot ice job key kid law lay leg lie lot low map may mix net nor off oil own pay"
    " pen pot ran raw red rid row run sad sat sea set sit six sky son sun tax tea ten tie tip top"
    " toy try van war wet win won yes yet zoo";
constexpr std::string_view kHard[] = {"\n\n- ", " \"a\"", " C:\\", "\tif ", " n\xC3\xA9",
                                      " \xE6\x97\xA5", "\xF0\x9F\x98\x80", "</b>"};

std::vector<Word> make_vocabulary() {
  std::vector<Word> words;
  for (std::size_t i = 0; i + kTokenBytes <= kWords.size(); i += kTokenBytes)
    words.push_back({kWords.substr(i, kTokenBytes), {}});
  for (std::string_view hard : kHard) words.push_back({hard, {}});
  for (Word& word : words) {
    CHECK(word.text.size() == kTokenBytes);
    append_json(word.json, word.text);
  }
  return words;
}

std::uint32_t number(const char* bytes) {
  std::uint32_t id = 0;
  std::memcpy(&id, bytes, kTokenBytes);
  return id;
}

bool is_word(std::string_view text) {
  static const std::unordered_set<std::uint32_t> words = [] {
    std::unordered_set<std::uint32_t> all;
    for (const Word& word : vocabulary()) all.insert(number(word.text.data()));
    return all;
  }();
  return text.size() == kTokenBytes && words.contains(number(text.data()));
}

std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

// Cuts the answer at the first stop string; the tokens behind it were never made.
void cut_at_stop(Answer& answer, const std::vector<std::string>& stops) {
  std::size_t cut = answer.text.npos;
  for (std::size_t i = 0; i < stops.size(); ++i) {
    if (stops[i].empty()) continue;
    const std::size_t at = answer.text.find(stops[i]);
    if (at >= cut) continue;
    cut = at;
    answer.stop = static_cast<int>(i);
  }
  if (cut == answer.text.npos) return;
  const std::size_t seen = cut + stops[static_cast<std::size_t>(answer.stop)].size();
  answer.tokens = static_cast<std::int64_t>((seen + kTokenBytes - 1) / kTokenBytes);
  answer.finish = Finish::Stop;
  answer.text.resize(cut);
}

}  // namespace

const std::vector<Word>& vocabulary() {
  static const std::vector<Word> words = make_vocabulary();
  return words;
}

void TextState::append(std::string_view bytes) {
  if (bytes.size() >= kTokenBytes) {
    last_four_ = bytes.substr(bytes.size() - kTokenBytes);
  } else {
    last_four_ += bytes;
    if (last_four_.size() > kTokenBytes) last_four_.erase(0, last_four_.size() - kTokenBytes);
  }
  if (!tail_.empty()) {
    const std::size_t missing = std::min(kChunkBytes - tail_.size(), bytes.size());
    tail_ += bytes.substr(0, missing);
    bytes.remove_prefix(missing);
    if (tail_.size() < kChunkBytes) return;
    link(tail_.data());
    tail_.clear();
  }
  for (; bytes.size() >= kChunkBytes; bytes.remove_prefix(kChunkBytes)) link(bytes.data());
  tail_ += bytes;
}

void TextState::link(const char* chunk) {
  const std::uint64_t parent = chain_.empty() ? 0x5349474E414C2121ull : chain_.back();
  chain_.push_back(XXH3_64bits_withSeed(chunk, kChunkBytes, parent));
}

std::uint64_t TextState::identity() const {
  const std::uint64_t parent = chain_.empty() ? 0x5349474E414C2121ull : chain_.back();
  return XXH3_64bits_withSeed(tail_.data(), tail_.size(), parent ^ chain_.size());
}

std::uint64_t text_identity(std::string_view text) {
  TextState state;
  state.append(text);
  return state.identity();
}

bool TextState::ends_with_word() const { return is_word(last_four_); }

std::string_view Answer::piece(std::int64_t k) const {
  const std::size_t begin = static_cast<std::size_t>(k - 1) * kTokenBytes;
  if (k < 1 || begin >= text.size()) return {};
  return std::string_view(text).substr(begin, kTokenBytes);
}

Answer generate(TextState& state, const AnswerRule& rule) {
  CHECK(rule.tokens_max >= 1 && rule.tokens_mean >= 1);
  const auto& words = vocabulary();
  Answer answer;
  bool may_end = state.ends_with_word();
  while (answer.tokens < rule.tokens_max) {
    const std::uint64_t draw = mix(state.identity() ^ mix(rule.seed));
    ++answer.tokens;
    const bool ends = (draw & 0xFFFFFFFF) % static_cast<std::uint64_t>(rule.tokens_mean) == 0;
    if (ends && may_end && !rule.ignore_end && answer.tokens > rule.tokens_min) {
      answer.finish = Finish::Stop;
      break;
    }
    const Word& word = words[static_cast<std::size_t>(draw >> 32) % words.size()];
    answer.text += word.text;
    state.append(word.text);
    may_end = true;
  }
  if (!rule.stops.empty()) cut_at_stop(answer, rule.stops);
  return answer;
}

Answer expected_answer(std::uint64_t seed, std::string_view rendered, std::int64_t max_tokens) {
  TextState state;
  state.append(rendered);
  AnswerRule rule;
  rule.seed = seed;
  rule.tokens_max = std::max<std::int64_t>(1, max_tokens);
  return generate(state, rule);
}

void append_json(std::string& out, std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  for (const char c : text) {
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      case '\b': out += "\\b"; break;
      case '\f': out += "\\f"; break;
      default: {
        const auto byte = static_cast<unsigned char>(c);
        if (byte >= 0x20) {
          out += c;
        } else {
          out += "\\u00";
          out += kHex[byte >> 4];
          out += kHex[byte & 15];
        }
      }
    }
  }
}

std::vector<std::uint32_t> token_ids(std::string_view text) {
  std::vector<std::uint32_t> ids;
  for (std::size_t i = 0; i < text.size(); i += kTokenBytes) {
    char bytes[kTokenBytes] = {};
    std::memcpy(bytes, text.data() + i, std::min(kTokenBytes, text.size() - i));
    ids.push_back(number(bytes));
  }
  return ids;
}

void append_token(std::string& out, std::uint32_t id) {
  char bytes[kTokenBytes];
  std::memcpy(bytes, &id, kTokenBytes);
  std::size_t size = kTokenBytes;
  while (size > 0 && bytes[size - 1] == 0) --size;
  out.append(bytes, size);
}

}  // namespace signalbox::emulator
