// SPDX-License-Identifier: Apache-2.0
// OpenAI's Responses API, which both engines speak: one message with one text part; every event has
// a sequence number.
#include "emulator/exchange.h"

namespace signalbox::emulator::responses {
namespace {

std::string item_id(const Exchange& ex) {
  return json_string("msg_" + ex.id.substr(ex.id.find('_') + 1));
}

std::string part(std::string_view text) {
  return "{\"type\":\"output_text\",\"annotations\":[],\"logprobs\":[],\"text\":" +
         json_string(text) + "}";
}

std::string item(const Exchange& ex, std::string_view status, std::string_view content) {
  std::string out = "{\"id\":" + item_id(ex) +
                    ",\"type\":\"message\",\"role\":\"assistant\",\"status\":\"";
  return out.append(status).append("\",\"content\":[").append(content).append("]}");
}

bool cut(const Exchange& ex) { return ex.choices.front().answer.finish == Finish::Length; }

// The response object; `done` with its output and usage.
std::string object(const Exchange& ex, bool done) {
  const Choice& c = ex.choices.front();
  const std::string_view status = !done ? "in_progress" : cut(ex) ? "incomplete" : "completed";
  std::string out = "{\"id\":" + json_string(ex.id) +
                    ",\"object\":\"response\",\"created_at\":" + std::to_string(ex.created) +
                    ",\"status\":\"";
  out.append(status).append("\",\"background\":false,\"error\":null,\"incomplete_details\":");
  out += done && cut(ex) ? "{\"reason\":\"max_output_tokens\"}" : "null";
  out += ",\"instructions\":null,\"metadata\":{},\"model\":" + ex.model + ",\"output\":[";
  if (done) out += item(ex, status, part(c.answer.text));
  out += "],\"parallel_tool_calls\":true,\"temperature\":1.0,\"tool_choice\":\"auto\",\"tools\":[],"
         "\"top_p\":1.0,\"usage\":";
  if (!done) return out + "null}";
  return out + "{\"input_tokens\":" + std::to_string(c.prompt_tokens) +
         ",\"input_tokens_details\":{\"cached_tokens\":" + std::to_string(c.cached) +
         "},\"output_tokens\":" + std::to_string(c.produced) +
         ",\"output_tokens_details\":{\"reasoning_tokens\":0},\"total_tokens\":" +
         std::to_string(c.prompt_tokens + c.produced) + "}}";
}

void event(Exchange& ex, std::string_view type, std::string_view fields) {
  ex.events.chunk({"event: ", type, "\ndata: {\"type\":\"", type, "\",\"sequence_number\":",
                   std::to_string(ex.sequence_number++), ",", fields, "}\n\n"},
                  1);
}

constexpr std::string_view kPlace = "\"output_index\":0,\"content_index\":0,\"item_id\":";

}  // namespace

void open(Exchange& ex) {
  event(ex, "response.created", "\"response\":" + object(ex, false));
  event(ex, "response.in_progress", "\"response\":" + object(ex, false));
  event(ex, "response.output_item.added",
        "\"output_index\":0,\"item\":" + item(ex, "in_progress", ""));
  event(ex, "response.content_part.added",
        std::string(kPlace) + item_id(ex) + ",\"part\":" + part(""));
  ex.after = "\",\"logprobs\":[]," + std::string(kPlace) + item_id(ex);
}

void token(Exchange& ex, std::size_t index) {
  const Choice& choice = ex.choices[index];
  std::string scratch;
  const std::string_view piece = piece_json(choice, scratch);
  if (piece.empty()) return;
  ex.events.chunk({"event: response.output_text.delta\ndata: {\"type\":"
                   "\"response.output_text.delta\",\"sequence_number\":",
                   std::to_string(ex.sequence_number++), ",\"delta\":\"", piece, ex.after,
                   "}\n\n"},
                  1);
}

void close(Exchange& ex) {
  const std::string& text = ex.choices.front().answer.text;
  const std::string place = std::string(kPlace) + item_id(ex);
  event(ex, "response.output_text.done",
        place + ",\"logprobs\":[],\"text\":" + json_string(text));
  event(ex, "response.content_part.done", place + ",\"part\":" + part(text));
  event(ex, "response.output_item.done",
        "\"output_index\":0,\"item\":" +
            item(ex, cut(ex) ? "incomplete" : "completed", part(text)));
  event(ex, cut(ex) ? "response.incomplete" : "response.completed",
        "\"response\":" + object(ex, true));
}

std::string plain(const Exchange& ex) { return object(ex, true); }

}  // namespace signalbox::emulator::responses
