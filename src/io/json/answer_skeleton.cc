// SPDX-License-Identifier: Apache-2.0
// A machine over brackets and strings; strings, which are most of large answers, are leapt over.
#include "io/json/answer_skeleton.h"

#include "io/json/bytes.h"

namespace signalbox::json {
namespace {

constexpr std::size_t kDepthMax = 128;
constexpr std::size_t kKeyMax = 32;

bool counts(std::string_view key) {
  return key == "usage" || key == "timings" || key == "metrics" || key == "model" ||
         key == "error" || key == "status" || key == "stop_reason" || key == "input_tokens";
}

}  // namespace

void AnswerSkeleton::put(std::string_view bytes) {
  if (dropping()) return;
  if (bytes.size() > kRoom - text_.size()) {
    failed_ = true;
  } else {
    text_ += bytes;
  }
}

std::string_view AnswerSkeleton::text() const {
  return failed_ || in_string_ || !shape_.empty() ? std::string_view{} : text_;
}

AnswerSkeleton::Fate AnswerSkeleton::fate(char first) const {
  if (keep_from_ != 0) return Fate::Keep;
  switch (shape_.size()) {
    case 0: return Fate::Open;
    case 1:
      if (key_ == "choices" && first == '[') return Fate::Open;
      return counts(key_) ? Fate::Keep : Fate::Drop;
    case 2: return first == '{' ? Fate::Open : Fate::Drop;
    default: return key_ == "finish_reason" ? Fate::Keep : Fate::Drop;
  }
}

// A value begins. Of one that is left out, a 0 remains.
void AnswerSkeleton::begin(char first) {
  if (dropping()) return;
  const bool container = first == '{' || first == '[';
  const Fate here = fate(first);
  if (here == Fate::Drop) {
    put("0");
    if (container) drop_from_ = shape_.size() + 1;
    else drop_atom_ = true;
  } else if (here == Fate::Keep && container && keep_from_ == 0) {
    keep_from_ = shape_.size() + 1;
  }
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
  if (drop_from_ == shape_.size()) drop_from_ = 0;
  if (keep_from_ == shape_.size()) keep_from_ = 0;
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
