// SPDX-License-Identifier: Apache-2.0
// Whole answers of every API.
#include "io/json/answer_reader.h"

#include "io/json/answer_walk.h"

namespace signalbox::json {
namespace {

constexpr int kDepthMax = 128;

class Reader {
 public:
  Reader(model::Api api, std::string_view body) : api_(api), c_(body, kDepthMax) {}
  Answer read();

 private:
  bool member(const Token& key);
  bool choice();
  bool error();
  bool model_value();
  bool status();

  model::Api api_;
  Cursor c_;
  Answer out_;
  UsageParts usage_;
  TimingParts timings_;
  bool has_usage_ = false;
};

bool Reader::choice() {
  ++out_.choices;
  if (c_.peek() != '{') return c_.skip(2);
  bool finished = false;
  const auto each = [&](const Token& key) {
    return key.raw() == "finish_reason" ? read_filled(c_, 3, finished) : c_.skip(3);
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

bool Reader::member(const Token& key) {
  const std::string_view name = key.raw();
  const bool responses = api_ == model::Api::Responses;
  const bool messages = api_ == model::Api::Messages;
  if (name == "choices" && c_.peek() == '[') return c_.array(2, [this] { return choice(); });
  if (name == "usage") return read_usage(c_, 1, usage_, has_usage_);
  if (name == "timings") return read_timings(c_, 1, timings_);
  if (name == "metrics") return read_metrics(c_, 1, timings_);
  if (name == "model") return model_value();
  if (name == "error") return error();
  if (name == "status" && responses) return status();
  if (name == "input_tokens" && api_ == model::Api::CountTokens) {
    return read_integer(c_, 1, usage_.prompt);
  }
  if (name == "stop_reason" && messages) {
    bool finished = false;
    if (!read_filled(c_, 1, finished)) return false;
    out_.finished = finished ? 1 : 0;
    return true;
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
  const bool owes = api_ == model::Api::ChatCompletions || api_ == model::Api::Completions;
  if (owes && out_.choices == 0) out_.choices = 1;
  out_.usage = to_usage(api_, usage_, timings_);
  out_.timings = to_timings(timings_);
  return out_;
}

}  // namespace

Answer read_answer(model::Api api, std::string_view body) {
  if (body.size() > 0xFFFFFFFE) return {};
  return Reader(api, body).read();
}

}  // namespace signalbox::json
