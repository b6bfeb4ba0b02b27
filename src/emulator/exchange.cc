// SPDX-License-Identifier: Apache-2.0
// Chunk framing with faults, sums over choices, and the switch between the shapes of answers.
#include "emulator/exchange.h"

#include <charconv>
#include <cmath>

namespace signalbox::emulator {

bool EventStream::struck(int count) {
  if (state_ == State::Cut || state_ == State::Failed) return true;
  const auto due = [&](const std::optional<std::int64_t>& after) {
    return after && events_ >= *after;
  };
  if (due(fault_.cut_after_events)) state_ = State::Cut;
  else if (due(fault_.error_event_after)) state_ = State::Failed;
  else if (due(fault_.stall_after_events)) state_ = State::Stalled;
  events_ += count;
  return state_ == State::Cut || state_ == State::Failed;
}

void EventStream::chunk(std::initializer_list<std::string_view> pieces, int count) {
  if (struck(count)) return;
  if (state_ == State::Stalled)
    frame(held_, pieces);
  else if (out_ != nullptr)
    frame(*out_, pieces);
}

void EventStream::finish() {
  if (state_ == State::Stalled)
    held_ += "0\r\n\r\n";
  else if (out_ != nullptr && state_ != State::Cut)
    *out_ += "0\r\n\r\n";
}

void EventStream::resume() {
  if (state_ != State::Stalled) return;
  state_ = State::Flowing;
  fault_.stall_after_events.reset();
  if (out_ != nullptr) *out_ += held_;
  held_.clear();
}

void EventStream::frame(std::string& out, std::initializer_list<std::string_view> pieces) {
  std::size_t size = 0;
  for (std::string_view piece : pieces) size += piece.size();
  char digits[16];
  const auto end = std::to_chars(digits, digits + sizeof digits, size, 16).ptr;
  out.append(digits, end);
  out.append("\r\n", 2);
  for (std::string_view piece : pieces) out += piece;
  out.append("\r\n", 2);
}

std::int64_t Exchange::prompt_tokens() const {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < choices.size(); i += static_cast<std::size_t>(request.n))
    sum += choices[i].prompt_tokens;
  return sum;
}

std::int64_t Exchange::cached_tokens() const {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < choices.size(); i += static_cast<std::size_t>(request.n))
    sum += choices[i].cached;
  return sum;
}

std::int64_t Exchange::produced_tokens() const {
  std::int64_t sum = 0;
  for (const Choice& choice : choices) sum += choice.produced;
  return sum;
}

std::string json_string(std::string_view text) {
  std::string out = "\"";
  append_json(out, text);
  return out += '"';
}

std::string json_number(double value) {
  if (!std::isfinite(value)) return "0.0";
  char buffer[32];
  std::string out(buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr);
  if (out.find_first_of(".e") == out.npos) out += ".0";
  return out;
}

std::string_view finish_name(const Choice& choice) {
  return choice.answer.finish == Finish::Stop ? "stop" : "length";
}

double milliseconds(Duration d) { return static_cast<double>(d.count()) * 1e-6; }

std::string_view piece_json(const Choice& choice, std::string& scratch) {
  const std::string_view piece = choice.answer.piece(choice.produced);
  bool plain = true;
  for (const char c : piece)
    plain = plain && c != '"' && c != '\\' && static_cast<unsigned char>(c) >= 0x20;
  if (plain) return piece;
  scratch.clear();
  append_json(scratch, piece);
  return scratch;
}

std::string ids_json(const std::vector<std::uint32_t>& ids) {
  std::string out = "[";
  for (const std::uint32_t id : ids) {
    if (out.size() > 1) out += ',';
    out += std::to_string(id);
  }
  return out += ']';
}

void stream_open(Exchange& ex) {
  switch (ex.request.api) {
    case Api::Messages: return messages::open(ex);
    case Api::Responses: return responses::open(ex);
    default: return ex.dialect == Dialect::Vllm ? vllm::open(ex) : llamacpp::open(ex);
  }
}

void stream_token(Exchange& ex, std::size_t index) {
  switch (ex.request.api) {
    case Api::Messages: return messages::token(ex, index);
    case Api::Responses: return responses::token(ex, index);
    default:
      return ex.dialect == Dialect::Vllm ? vllm::token(ex, index) : llamacpp::token(ex, index);
  }
}

void stream_close(Exchange& ex) {
  switch (ex.request.api) {
    case Api::Messages: return messages::close(ex);
    case Api::Responses: return responses::close(ex);
    default: return ex.dialect == Dialect::Vllm ? vllm::close(ex) : llamacpp::close(ex);
  }
}

std::string plain_answer(const Exchange& ex) {
  switch (ex.request.api) {
    case Api::Messages: return messages::plain(ex);
    case Api::Responses: return responses::plain(ex);
    default: return ex.dialect == Dialect::Vllm ? vllm::plain(ex) : llamacpp::plain(ex);
  }
}

void stream_error(Exchange& ex) {
  // The stream has stopped counting; this goes out as it is.
  EventStream last;
  if (ex.connection == nullptr) return;
  last.attach(ex.events.sink());
  const std::string message =
      "EngineCore encountered an issue. See stack trace (above) for the root cause.";
  if (ex.request.api == Api::Messages) {
    last.chunk({"event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\","
                "\"message\":\"", message, "\"}}\n\n"}, 1);
  } else if (ex.request.api == Api::Responses) {
    last.chunk({"event: error\ndata: {\"type\":\"error\",\"code\":\"server_error\",\"message\":\"",
                message, "\",\"param\":null}\n\n"}, 1);
  } else if (ex.dialect == Dialect::Vllm) {
    last.chunk({"data: {\"error\": {\"message\": \"", message,
                "\", \"type\": \"InternalServerError\", \"param\": null, \"code\": 500}}\n\n"}, 1);
    last.chunk({"data: [DONE]\n\n"}, 1);
  } else {
    last.chunk({"data: {\"error\":{\"code\":500,\"message\":\"Compute error.\","
                "\"type\":\"server_error\"}}\n\n"}, 1);
  }
  last.finish();
}

std::string refusal_body(Dialect dialect, Api api, const Refusal& refusal,
                         std::int64_t context_tokens) {
  const std::string message = json_string(refusal.message);
  const std::string type = json_string(refusal.type);
  const std::string code = std::to_string(refusal.status);
  if (dialect == Dialect::LlamaCpp) {
    std::string out = "{\"error\":{\"code\":" + code + ",\"message\":" + message +
                      ",\"type\":" + type;
    if (refusal.prompt_tokens >= 0)
      out += ",\"n_prompt_tokens\":" + std::to_string(refusal.prompt_tokens) +
             ",\"n_ctx\":" + std::to_string(context_tokens);
    return out + "}}";
  }
  if (api == Api::Messages)
    return "{\"type\":\"error\",\"error\":{\"type\":" + type + ",\"message\":" + message + "}}";
  const std::string param = refusal.param.empty() ? "null" : json_string(refusal.param);
  return "{\"error\":{\"message\":" + message + ",\"type\":" + type + ",\"param\":" + param +
         ",\"code\":" + code + "}}";
}

}  // namespace signalbox::emulator
