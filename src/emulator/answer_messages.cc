// SPDX-License-Identifier: Apache-2.0
// Anthropic's Messages API, which both engines speak: named events, no [DONE]; cached and computed
// prompt tokens are disjoint.
#include "emulator/exchange.h"

namespace signalbox::emulator::messages {
namespace {

std::string_view stop_reason(const Choice& choice) {
  if (choice.answer.stop >= 0) return "stop_sequence";
  return choice.answer.finish == Finish::Stop ? "end_turn" : "max_tokens";
}

std::string stop_sequence(const Exchange& ex, const Choice& choice) {
  if (choice.answer.stop < 0) return "null";
  return json_string(ex.request.stops[static_cast<std::size_t>(choice.answer.stop)]);
}

std::string usage(const Exchange& ex, std::int64_t produced) {
  const Choice& c = ex.choices.front();
  return "{\"cache_read_input_tokens\":" + std::to_string(c.cached) +
         ",\"input_tokens\":" + std::to_string(c.prompt_tokens - c.cached) +
         ",\"output_tokens\":" + std::to_string(produced) + "}";
}

std::string start(const Exchange& ex) {
  return "{\"id\":" + json_string(ex.id) + ",\"type\":\"message\",\"role\":\"assistant\",";
}

}  // namespace

void open(Exchange& ex) {
  ex.events.chunk({"event: message_start\ndata: {\"type\":\"message_start\",\"message\":",
                   start(ex), "\"content\":[],\"model\":", ex.model,
                   ",\"stop_reason\":null,\"stop_sequence\":null,\"usage\":", usage(ex, 0),
                   "}}\n\n"},
                  1);
  ex.events.chunk({"event: content_block_start\ndata: {\"type\":\"content_block_start\","
                   "\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n"},
                  1);
}

void token(Exchange& ex, std::size_t index) {
  const Choice& choice = ex.choices[index];
  std::string scratch;
  const std::string_view piece = piece_json(choice, scratch);
  if (piece.empty()) return;
  ex.events.chunk({"event: content_block_delta\ndata: {\"type\":\"content_block_delta\","
                   "\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"",
                   piece, "\"}}\n\n"},
                  1);
}

void close(Exchange& ex) {
  const Choice& choice = ex.choices.front();
  ex.events.chunk(
      {"event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n"}, 1);
  ex.events.chunk({"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{"
                   "\"stop_reason\":\"",
                   stop_reason(choice), "\",\"stop_sequence\":", stop_sequence(ex, choice),
                   "},\"usage\":{\"output_tokens\":", std::to_string(choice.produced), "}}\n\n"},
                  1);
  ex.events.chunk({"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"}, 1);
}

std::string plain(const Exchange& ex) {
  const Choice& choice = ex.choices.front();
  std::string out = start(ex) + "\"content\":[{\"type\":\"text\",\"text\":" +
                    json_string(choice.answer.text) + "}],\"model\":" + ex.model +
                    ",\"stop_reason\":\"";
  out.append(stop_reason(choice)).append("\",\"stop_sequence\":");
  return out + stop_sequence(ex, choice) + ",\"usage\":" + usage(ex, choice.produced) + "}";
}

}  // namespace signalbox::emulator::messages
