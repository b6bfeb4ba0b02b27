// SPDX-License-Identifier: Apache-2.0
// Chat and completion answers as llama.cpp's server writes them: two events in the first and in the
// last chunk, timings in every answer, usage of the first choice alone.
#include <algorithm>

#include "emulator/exchange.h"

namespace signalbox::emulator::llamacpp {
namespace {

bool chat(const Exchange& ex) { return ex.request.api == Api::Chat; }

std::string usage(const Exchange& ex) {
  const Choice& c = ex.choices.front();
  return "\"usage\":{\"completion_tokens\":" + std::to_string(c.produced) +
         ",\"prompt_tokens\":" + std::to_string(c.prompt_tokens) +
         ",\"total_tokens\":" + std::to_string(c.prompt_tokens + c.produced) +
         ",\"prompt_tokens_details\":{\"cached_tokens\":" + std::to_string(c.cached) + "}}";
}

std::string stamp(const Exchange& ex, std::string_view object) {
  const std::string created = "\"created\":" + std::to_string(ex.created);
  const std::string model = ",\"model\":" + ex.model;
  const std::string tail = ",\"system_fingerprint\":\"b0-emulated\",\"object\":\"";
  std::string out = created;
  if (object == "chat.completion.chunk") out += ",\"id\":" + json_string(ex.id);
  out += model + tail;
  return out.append(object).append("\"");
}

std::string delta(const Exchange& ex, std::size_t index, std::string_view finish,
                  std::string_view inside) {
  std::string out = "data: {\"choices\":[{\"finish_reason\":";
  out.append(finish).append(",\"index\":").append(std::to_string(index)).append(",\"delta\":{");
  return out.append(inside).append("}}],").append(stamp(ex, "chat.completion.chunk"));
}

void finish_chat(Exchange& ex, std::size_t index) {
  const Choice& choice = ex.choices[index];
  std::string reason = "\"";
  reason.append(finish_name(choice)).append("\"");
  const std::string end = delta(ex, index, reason, "");
  if (!ex.request.include_usage) {
    ex.events.chunk({end, ",", timings(ex, choice), "}\n\n"}, 1);
  } else if (ex.open_choices > 1) {
    ex.events.chunk({end, "}\n\n"}, 1);
  } else {
    ex.events.chunk({end, "}\n\ndata: {\"choices\":[],", stamp(ex, "chat.completion.chunk"), ",",
                     usage(ex), ",", timings(ex, choice), "}\n\n"},
                    2);
  }
}

void finish_text(Exchange& ex, std::size_t index) {
  const Choice& choice = ex.choices[index];
  std::string head = "data: {\"choices\":[{\"text\":\"\",\"index\":" + std::to_string(index) +
                     ",\"logprobs\":null,\"finish_reason\":\"";
  head.append(finish_name(choice)).append("\"}],").append(stamp(ex, "text_completion"));
  ex.events.chunk({head, ",", usage(ex), ",\"id\":", json_string(ex.id), ",", timings(ex, choice),
                   "}\n\n"},
                  1);
}

}  // namespace

std::string timings(const Exchange&, const Choice& c) {
  const double prompt_ms = milliseconds(c.first - c.admitted);
  const double predicted_ms = std::max(0.001, milliseconds(c.last - c.first));
  const auto computed = static_cast<double>(c.prompt_tokens - c.cached);
  const auto gaps = static_cast<double>(c.produced - 1);
  return "\"timings\":{\"cache_n\":" + std::to_string(c.cached) +
         ",\"prompt_n\":" + std::to_string(c.prompt_tokens - c.cached) +
         ",\"prompt_ms\":" + json_number(prompt_ms) +
         ",\"prompt_per_token_ms\":" + json_number(prompt_ms / computed) +
         ",\"prompt_per_second\":" + json_number(computed / prompt_ms * 1e3) +
         ",\"predicted_n\":" + std::to_string(c.produced) +
         ",\"predicted_ms\":" + json_number(predicted_ms) +
         ",\"predicted_per_token_ms\":" + json_number(gaps > 0 ? predicted_ms / gaps : 0) +
         ",\"predicted_per_second\":" + json_number(gaps > 0 ? gaps / predicted_ms * 1e3 : 0) + "}";
}

void open(Exchange& ex) {
  for (std::size_t i = 0; i < ex.choices.size(); ++i) {
    const std::string index = std::to_string(i);
    ex.before.push_back(
        chat(ex) ? "data: {\"choices\":[{\"finish_reason\":null,\"index\":" + index +
                       ",\"delta\":{\"content\":\""
                 : "data: {\"choices\":[{\"text\":\"");
  }
  ex.after = chat(ex) ? "\"}}]," + stamp(ex, "chat.completion.chunk") : std::string();
}

void token(Exchange& ex, std::size_t index) {
  const Choice& choice = ex.choices[index];
  std::string scratch;
  const std::string_view piece = piece_json(choice, scratch);
  const bool last = choice.produced == choice.answer.tokens;
  std::string extra;
  if (ex.request.timings_per_token) extra = "," + timings(ex, choice);
  if (chat(ex)) {
    std::string role;
    if (choice.produced == 1)
      role = delta(ex, index, "null", "\"role\":\"assistant\",\"content\":null") + "}\n\n";
    if (!piece.empty())
      ex.events.chunk({role, ex.before[index], piece, ex.after, extra, "}\n\n"},
                      role.empty() ? 1 : 2);
    else if (!role.empty())
      ex.events.chunk({role}, 1);
    if (last) finish_chat(ex, index);
    return;
  }
  if (!piece.empty())
    ex.events.chunk({ex.before[index], piece, "\",\"index\":", std::to_string(index),
                     ",\"logprobs\":null,\"finish_reason\":null}],", stamp(ex, "text_completion"),
                     ",\"id\":", json_string(ex.id), extra, "}\n\n"},
                    1);
  if (last) finish_text(ex, index);
}

void close(Exchange& ex) { ex.events.chunk({"data: [DONE]\n\n"}, 1); }

std::string plain(const Exchange& ex) {
  std::string out = "{\"choices\":[";
  for (std::size_t i = 0; i < ex.choices.size(); ++i) {
    const Choice& c = ex.choices[i];
    const std::string text = json_string(c.echo + c.answer.text);
    const std::string index = std::to_string(i);
    const std::string reason = "\"" + std::string(finish_name(c)) + "\"";
    if (i > 0) out += ',';
    out += chat(ex) ? "{\"finish_reason\":" + reason + ",\"index\":" + index +
                          ",\"message\":{\"role\":\"assistant\",\"content\":" + text + "}}"
                    : "{\"text\":" + text + ",\"index\":" + index +
                          ",\"logprobs\":null,\"finish_reason\":" + reason + "}";
  }
  out += "]," + stamp(ex, chat(ex) ? "chat.completion" : "text_completion") + "," + usage(ex);
  return out + ",\"id\":" + json_string(ex.id) + "," + timings(ex, ex.choices.front()) + "}";
}

}  // namespace signalbox::emulator::llamacpp
