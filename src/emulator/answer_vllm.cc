// SPDX-License-Identifier: Apache-2.0
// Chat and completion answers as vLLM 0.32 writes them. One event per HTTP chunk; the last token
// and the finish reason share an event.
#include "emulator/exchange.h"

namespace signalbox::emulator::vllm {
namespace {

constexpr std::string_view kFingerprint = "\"system_fingerprint\":\"vllm-0.32.0-emulated\"";

bool chat(const Exchange& ex) { return ex.request.api == Api::Chat; }

std::string envelope(const Exchange& ex, bool stream) {
  const std::string_view object =
      chat(ex) ? (stream ? "chat.completion.chunk" : "chat.completion") : "text_completion";
  std::string out = "{\"id\":" + json_string(ex.id) + ",\"object\":\"";
  out.append(object).append("\",\"created\":").append(std::to_string(ex.created));
  return out.append(",\"model\":").append(ex.model).append(",\"choices\":[");
}

std::string usage(const Exchange& ex, bool whole) {
  const std::int64_t prompt = ex.prompt_tokens();
  const std::int64_t produced = ex.produced_tokens();
  std::string out = "{\"prompt_tokens\":" + std::to_string(prompt) +
                    ",\"total_tokens\":" + std::to_string(prompt + produced) +
                    ",\"completion_tokens\":" + std::to_string(produced);
  if (ex.details)
    out += ",\"prompt_tokens_details\":{\"cached_tokens\":" + std::to_string(ex.cached_tokens()) +
           ",\"created_cache_tokens\":null,\"multimodal_tokens\":null}";
  else if (whole)
    out += ",\"prompt_tokens_details\":null";
  if (whole) out += ",\"completion_tokens_details\":null";
  return out += '}';
}

std::string metrics(const Exchange& ex) {
  if (!ex.metrics) return "null";
  const Choice& c = ex.choices.front();
  const double generation = milliseconds(c.last - c.first);
  const double gaps = static_cast<double>(c.produced - 1);
  return "{\"time_to_first_token_ms\":" + json_number(milliseconds(c.first - ex.arrived)) +
         ",\"generation_time_ms\":" + json_number(generation) +
         ",\"queue_time_ms\":" + json_number(milliseconds(c.admitted - ex.arrived)) +
         ",\"mean_itl_ms\":" + json_number(gaps > 0 ? generation / gaps : 0) +
         ",\"tokens_per_second\":" + json_number(generation > 0 ? gaps / generation * 1e3 : 0) +
         "}";
}

std::string stop_reason(const Exchange& ex, const Choice& choice) {
  if (choice.answer.stop < 0) return "null";
  return json_string(ex.request.stops[static_cast<std::size_t>(choice.answer.stop)]);
}

std::string token_ids_of(const Exchange& ex, const Choice& choice) {
  if (!ex.request.return_token_ids) return "null";
  return ids_json(token_ids(choice.answer.piece(choice.produced)));
}

// What closes an event that does not end its choice, when nothing unusual was asked.
std::string plain_after(const Exchange& ex) {
  if (chat(ex)) return "\"},\"logprobs\":null,\"finish_reason\":null,\"token_ids\":null}]}\n\n";
  return "\",\"logprobs\":null,\"finish_reason\":null,\"stop_reason\":null,"
         "\"prompt_token_ids\":null,\"token_ids\":null}]}\n\n";
}

std::string special_after(const Exchange& ex, const Choice& choice, bool last) {
  std::string out = chat(ex) ? "\"}" : "\"";
  out += ",\"logprobs\":null,\"finish_reason\":";
  if (last)
    out.append("\"").append(finish_name(choice)).append("\"");
  else
    out += "null";
  if (last || !chat(ex)) out += ",\"stop_reason\":" + (last ? stop_reason(ex, choice) : "null");
  if (!chat(ex)) {
    const bool ids = ex.request.return_token_ids && choice.produced == 1;
    out += ",\"prompt_token_ids\":" + (ids ? ids_json(choice.prompt_ids) : "null");
  }
  out += ",\"token_ids\":" + token_ids_of(ex, choice) + "}]";
  if (ex.request.continuous_usage) out += ",\"usage\":" + usage(ex, true);
  if (last && !ex.request.include_usage) out.append(",").append(kFingerprint);
  return out += "}\n\n";
}

}  // namespace

void open(Exchange& ex) {
  const std::string head = "data: " + envelope(ex, true);
  ex.after = plain_after(ex);
  for (std::size_t i = 0; i < ex.choices.size(); ++i) {
    const std::string start = head + "{\"index\":" + std::to_string(i);
    ex.before.push_back(start + (chat(ex) ? ",\"delta\":{\"content\":\"" : ",\"text\":\""));
    if (!chat(ex)) continue;
    const std::string ids =
        ex.request.return_token_ids ? ids_json(ex.choices[i].prompt_ids) : "null";
    std::string tail = ",\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"logprobs\":null,"
                       "\"finish_reason\":null}]";
    if (ex.request.continuous_usage)
      tail += ",\"usage\":{\"prompt_tokens\":" + std::to_string(ex.prompt_tokens()) +
              ",\"total_tokens\":" + std::to_string(ex.prompt_tokens()) +
              ",\"completion_tokens\":0,\"completion_tokens_details\":null}";
    ex.events.chunk({start, tail, ",\"prompt_token_ids\":", ids, ",\"prompt_text\":null}\n\n"}, 1);
    if (ex.request.echo && !ex.choices[i].echo.empty())
      ex.events.chunk({ex.before[i], json_string(ex.choices[i].echo).substr(1), ex.after.substr(1)},
                      1);
  }
}

void token(Exchange& ex, std::size_t index) {
  const Choice& choice = ex.choices[index];
  const bool last = choice.produced == choice.answer.tokens;
  std::string scratch;
  const std::string_view piece = piece_json(choice, scratch);
  if (piece.empty() && !last) return;
  if (!last && !ex.request.continuous_usage && !ex.request.return_token_ids)
    ex.events.chunk({ex.before[index], piece, ex.after}, 1);
  else
    ex.events.chunk({ex.before[index], piece, special_after(ex, choice, last)}, 1);
}

void close(Exchange& ex) {
  if (ex.request.include_usage) {
    const std::string extra = ex.metrics ? ",\"metrics\":" + metrics(ex) : std::string();
    ex.events.chunk({"data: ", envelope(ex, true), "],\"usage\":", usage(ex, false), extra, ",",
                     kFingerprint, "}\n\n"},
                    1);
  }
  ex.events.chunk({"data: [DONE]\n\n"}, 1);
}

std::string plain(const Exchange& ex) {
  std::string out = envelope(ex, false);
  for (std::size_t i = 0; i < ex.choices.size(); ++i) {
    const Choice& c = ex.choices[i];
    const std::string text = json_string(c.echo + c.answer.text);
    const std::string ids =
        ex.request.return_token_ids ? ids_json(token_ids(c.answer.text)) : "null";
    const std::string prompt_ids =
        ex.request.return_token_ids ? ids_json(c.prompt_ids) : "null";
    if (i > 0) out += ',';
    out += "{\"index\":" + std::to_string(i);
    out += chat(ex) ? ",\"message\":{\"role\":\"assistant\",\"content\":" + text +
                          ",\"refusal\":null,\"annotations\":null,\"audio\":null,"
                          "\"function_call\":null,\"reasoning\":null}"
                    : ",\"text\":" + text;
    out.append(",\"logprobs\":null,\"finish_reason\":\"").append(finish_name(c));
    out += "\",\"stop_reason\":" + stop_reason(ex, c) + ",\"token_ids\":" + ids;
    if (!chat(ex)) out += ",\"prompt_logprobs\":null,\"prompt_token_ids\":" + prompt_ids;
    out += ",\"routed_experts\":null}";
  }
  out += "],\"service_tier\":null,";
  out.append(kFingerprint).append(",\"usage\":").append(usage(ex, true));
  if (chat(ex)) {
    const std::string ids =
        ex.request.return_token_ids ? ids_json(ex.choices.front().prompt_ids) : "null";
    out += ",\"prompt_logprobs\":null,\"prompt_token_ids\":" + ids + ",\"prompt_text\":null";
  }
  return out + ",\"kv_transfer_params\":null,\"ec_transfer_params\":null,\"metrics\":" +
         metrics(ex) + "}";
}

}  // namespace signalbox::emulator::vllm
