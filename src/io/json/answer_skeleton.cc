// SPDX-License-Identifier: Apache-2.0
// A machine over brackets and strings; strings, which are most of large answers, are leapt over.
#include "io/json/answer_skeleton.h"

#include "io/json/answer_keys.h"
#include "io/json/bytes.h"

namespace signalbox::json {
namespace {

constexpr std::size_t kDepthMax = 128;
constexpr std::size_t kKeyMax = 32;

}  // namespace

void AnswerSkeleton::put(std::string_view bytes) {
  if (dropping() || full_) return;
  full_ = bytes.size() > kRoom - text_.size();
  if (!full_) text_ += bytes;
}

Answer AnswerSkeleton::answer() const {
  if (failed_ || in_string_ || !shape_.empty() || text_.empty()) return {};
  if (!full_) return read_answer(api_, text_, counted_);
  Answer out = read_answer(api_, "{}", counted_);
  if (!has_choices(api_)) out.finished = out.choices;
  return out;
}

// A value of the outermost object begins; it is needed as it is.
bool AnswerSkeleton::counts(char first) {
  const AnswerKey key = find_answer_key(api_, key_);
  in_choices_ = key == AnswerKey::Choices && first == '[';
  return key != AnswerKey::None && key != AnswerKey::Choices;
}

// A value begins. Of one that is left out, a 0 remains.
void AnswerSkeleton::begin(char first) {
  if (in_choices_) return begin_in_choices(first);
  if (dropping()) return;
  if (shape_.empty() && (first != '{' || !text_.empty())) failed_ = true;
  if (shape_.size() != 1 || counts(first)) return;
  put("0");
  if (first == '{' || first == '[') drop_from_ = 2;
  else drop_atom_ = true;
}

void AnswerSkeleton::begin_in_choices(char first) {
  if (shape_.size() == 2) {
    ++counted_.choices;
    finished_ = false;
  }
  is_reason_ = first == '"' && shape_.size() == 3 && shape_.back() == '{' &&
               key_ == "finish_reason";
}

void AnswerSkeleton::structure(char c) {
  if (c == '{' || c == '[') {
    begin(c);
    put({&c, 1});
    shape_ += c;
    failed_ = failed_ || shape_.size() > kDepthMax;
    awaits_key_ = c == '{';
    return;
  }
  put({&c, 1});
  if (c == ',') awaits_key_ = !shape_.empty() && shape_.back() == '{';
  if (c == ',' || c == ':') return;
  awaits_key_ = false;
  if (shape_.empty() || shape_.back() != (c == '}' ? '{' : '[')) {
    failed_ = true;
    return;
  }
  if (drop_from_ == shape_.size()) {
    drop_from_ = 0;
    in_choices_ = false;
  }
  shape_.pop_back();
}

void AnswerSkeleton::end_string() {
  in_string_ = false;
  drop_atom_ = false;
  in_model_ = false;
}

// Returns how much belongs to the string, or to its part up to a backslash or what that escapes.
std::size_t AnswerSkeleton::in_string(std::string_view data) {
  const char* const end = data.data() + data.size();
  const char* const stop = escaped_ ? data.data() : find_special(data.data(), end);
  const std::size_t size = static_cast<std::size_t>(stop - data.data()) + (stop != end ? 1 : 0);
  const std::string_view part = data.substr(0, size);
  put(part);
  if (is_reason_ && data.front() != '"' && !finished_) {
    finished_ = true;
    ++counted_.finished;
  }
  is_reason_ = false;
  const bool closed = stop != end && *stop == '"' && !escaped_;
  if (is_key_ && key_.size() < kKeyMax) key_ += closed ? part.substr(0, size - 1) : part;
  escaped_ = stop != end && *stop == '\\' && !escaped_;
  if (closed) end_string();
  return size;
}

std::size_t AnswerSkeleton::feed(std::string_view data) {
  std::size_t at = 0;
  while (at < data.size() && !failed_) {
    if (in_string_) {
      const bool model = in_model_;
      at += in_string(data.substr(at));
      if (model && !in_model_) return at;
      continue;
    }
    const char c = data[at];
    const bool structural = c == '{' || c == '}' || c == '[' || c == ']' || c == ',' || c == ':';
    const bool blank = c == ' ' || c == '\n' || c == '\r' || c == '\t';
    if (structural || blank || c == '"') {
      if (in_word_) in_word_ = drop_atom_ = false;
    }
    if (structural) {
      structure(c);
    } else if (c == '"') {
      is_key_ = awaits_key_;
      awaits_key_ = false;
      if (!is_key_ && shape_.size() == 1 && key_ == "model" && !in_model_) {
        in_model_ = true;
        return at;
      }
      if (is_key_) key_.clear();
      else begin(c);
      put("\"");
      in_string_ = true;
    } else if (!blank) {
      if (!in_word_) begin(c);
      in_word_ = true;
      put({&c, 1});
    }
    ++at;
  }
  if (!failed_) return at;
  in_model_ = false;
  return data.size();
}

}  // namespace signalbox::json
