// SPDX-License-Identifier: Apache-2.0
// Whole answers of every API.
#include "io/json/answer_reader.h"

#include "io/json/answer_keys.h"
#include "io/json/answer_walk.h"

namespace signalbox::json {
namespace {

constexpr int kDepthMax = 128;

class Reader {
 public:
  Reader(model::Api api, std::string_view body, ChoiceCounts left_out)
      : api_(api), c_(body, kDepthMax) {
    out_.choices = static_cast<int>(left_out.choices);
    out_.finished = static_cast<int>(left_out.finished);
  }
  Answer read();

 private:
  bool member(const Token& key);
  bool choice();
  bool message();
  bool text(int depth);
  bool error();
  bool model_value();
  bool status();
  bool stop_reason();

  model::Api api_;
  Cursor c_;
  Answer out_;
  UsageParts usage_;
  TimingParts timings_;
  bool has_usage_ = false;
};

// A string or the list of calls.
bool Reader::text(int depth) {
  const char* const first = c_.p;
  if (!c_.skip(depth)) return false;
  const auto size = static_cast<std::size_t>(c_.p - first);
  if (size > 2 && (*first == '"' || *first == '[')) out_.text += size - 2;
  return true;
}

bool Reader::message() {
  return c_.object(4, [&](const Token& key) {
    const std::string_view name = key.raw();
    const bool said = name == "content" || name == "reasoning" || name == "reasoning_content" ||
                      name == "refusal" || name == "tool_calls";
    return said ? text(4) : c_.skip(4);
  });
}

bool Reader::choice() {
  ++out_.choices;
  if (c_.peek() != '{') return c_.skip(2);
  bool finished = false;
  const auto each = [&](const Token& key) {
    const std::string_view name = key.raw();
    if (name == "finish_reason") return read_filled(c_, 3, finished);
    if (name == "message" && c_.peek() == '{') return message();
    return name == "text" ? text(3) : c_.skip(3);
  };
  if (!c_.object(3, each)) return false;
  if (finished) ++out_.finished;
  return true;
}

bool Reader::error() {
  const std::uint32_t first = c_.offset();
  bool truth = false;
  if (!read_truth(c_, 1, truth)) return false;
  if (truth) {
    out_.error = true;
    out_.error_value = {first, c_.offset()};
  }
  return true;
}

bool Reader::model_value() {
  const std::uint32_t first = c_.offset();
  const bool is_string = c_.peek() == '"';
  if (!c_.skip(1)) return false;
  if (is_string) out_.model = {first, c_.offset()};
  return true;
}

// A Responses object ends as completed or incomplete; queued and in_progress are ends as well for
// a request that runs in the background.
bool Reader::status() {
  if (c_.peek() != '"') return c_.skip(1);
  Token token;
  if (!c_.string(token)) return false;
  if (token.raw() == "failed") out_.error = true;
  out_.finished = 1;
  return true;
}

bool Reader::stop_reason() {
  bool finished = false;
  if (!read_filled(c_, 1, finished)) return false;
  out_.finished = finished ? 1 : 0;
  return true;
}

bool Reader::member(const Token& key) {
  switch (find_answer_key(api_, key.raw())) {
    case AnswerKey::Choices:
      return c_.peek() == '[' ? c_.array(2, [this] { return choice(); }) : c_.skip(1);
    case AnswerKey::Usage: return read_usage(c_, 1, usage_, has_usage_);
    case AnswerKey::Timings: return read_timings(c_, 1, timings_);
    case AnswerKey::Metrics: return read_metrics(c_, 1, timings_);
    case AnswerKey::Model: return model_value();
    case AnswerKey::Error: return error();
    case AnswerKey::Status: return status();
    case AnswerKey::StopReason: return stop_reason();
    case AnswerKey::InputTokens: return read_integer(c_, 1, usage_.prompt);
    case AnswerKey::None: break;
  }
  return c_.skip(1);
}

Answer Reader::read() {
  c_.space();
  if (c_.peek() != '{' || !c_.object(1, [this](const Token& key) { return member(key); })) {
    return {};
  }
  c_.space();
  if (!c_.at_end()) return {};
  out_.valid = true;
  if (api_ == model::Api::Messages || api_ == model::Api::Responses) out_.choices = 1;
  // An answer that owes choices and has none is not complete.
  if (has_choices(api_) && out_.choices == 0) out_.choices = 1;
  out_.usage = to_usage(api_, usage_, timings_);
  out_.timings = to_timings(timings_);
  return out_;
}

}  // namespace

Answer read_answer(model::Api api, std::string_view body, ChoiceCounts left_out) {
  if (body.size() > 0xFFFFFFFE) return {};
  return Reader(api, body, left_out).read();
}

}  // namespace signalbox::json
