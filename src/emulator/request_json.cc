// SPDX-License-Identifier: Apache-2.0
// The one place that reads JSON. Renders messages by a ChatML template, checks what the engines
// check, and words the refusals as they do. Exceptions of the JSON library end here.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "emulator/request.h"

namespace signalbox::emulator {
namespace {

using Json = nlohmann::json;

struct Refused {
  Refusal refusal;
};

Refusal bad(std::string type, std::string message, std::string param = {}) {
  return {400, std::move(type), std::move(message), std::move(param)};
}

[[noreturn]] void refuse(Refusal refusal) { throw Refused{std::move(refusal)}; }

Refusal bad_json(Dialect dialect, std::string_view body, const Json::parse_error& error) {
  if (dialect == Dialect::LlamaCpp && body.empty())
    return bad("invalid_request_error",
               "[json.exception.parse_error.101] parse error at line 1, column 1: attempting to "
               "parse an empty input; check that your input string or stream contains the expected "
               "JSON");
  if (dialect == Dialect::LlamaCpp) return bad("invalid_request_error", error.what());
  const std::string at = "body." + std::to_string(error.byte > 0 ? error.byte - 1 : 0);
  return bad("Bad Request",
             "1 validation error:\n  {'type': 'json_invalid', 'loc': '" + at +
                 "', 'msg': 'JSON decode error', 'input': '<dict of 0 items>', 'ctx': {'error': "
                 "'Expecting value'}}",
             at);
}

// Runs `read` on the parsed body; whatever it throws becomes a refusal.
template <typename T, typename Function>
Read<T> guarded(Dialect dialect, std::string_view body, Function read) {
  try {
    return read(Json::parse(body));
  } catch (const Refused& refused) {
    return tl::unexpected(refused.refusal);
  } catch (const Json::parse_error& error) {
    return tl::unexpected(bad_json(dialect, body, error));
  } catch (const Json::exception& error) {
    return tl::unexpected(bad(
        dialect == Dialect::LlamaCpp ? "invalid_request_error" : "Bad Request", error.what()));
  }
}

class Reader {
 public:
  Reader(const Json& json, Dialect dialect) : json_(json), dialect_(dialect) {
    if (!json.is_object()) missing("messages");
  }

  bool llama() const { return dialect_ == Dialect::LlamaCpp; }
  const Json* find(const char* key) const {
    const auto it = json_.find(key);
    return it == json_.end() || it->is_null() ? nullptr : &*it;
  }
  std::string text(const char* key) const {
    const Json* value = find(key);
    return value != nullptr && value->is_string() ? value->get<std::string>() : std::string();
  }
  bool flag(const char* key, bool otherwise = false) const {
    const Json* value = find(key);
    return value != nullptr && value->is_boolean() ? value->get<bool>() : otherwise;
  }
  std::optional<double> number(const char* key) const {
    const Json* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (value->is_number()) return value->get<double>();
    if (llama())
      refuse(bad("invalid_request_error", std::string("Field '") + key +
                                              "': [json.exception.type_error.302] type must be "
                                              "number, but is " + value->type_name()));
    refuse(bad("Bad Request",
               std::string("1 validation error:\n  {'type': 'int_parsing', 'loc': 'body.") + key +
                   "', 'msg': 'Input should be a valid number'}",
               std::string("body.") + key));
  }
  std::optional<std::int64_t> integer(const char* key) const {
    const auto value = number(key);
    if (!value) return std::nullopt;
    if (!(std::abs(*value) < 1e15)) refuse(bad("Bad Request", std::string(key) + " is too large"));
    return static_cast<std::int64_t>(*value);
  }
  [[noreturn]] void missing(const std::string& field) const {
    if (llama()) refuse(bad("invalid_request_error", "'" + field + "' is required"));
    refuse(bad("Bad Request",
               "1 validation error:\n  {'type': 'missing', 'loc': 'body." + field +
                   "', 'msg': 'Field required', 'input': '<dict of " +
                   std::to_string(json_.size()) + " items>'}",
               "body." + field));
  }

 private:
  const Json& json_;
  Dialect dialect_;
};

std::string dumped(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Text of a message: a string, or parts of which what is no text stands as its JSON.
std::string content_text(const Json& content) {
  if (content.is_string()) return content.get<std::string>();
  std::string text;
  if (!content.is_array()) return content.is_null() ? text : dumped(content);
  for (const Json& part : content) {
    if (part.is_string()) {
      text += part.get<std::string>();
    } else if (const auto t = part.is_object() ? part.find("text") : part.end();
               part.is_object() && t != part.end() && t->is_string()) {
      text += t->get<std::string>();
    } else {
      text += "<|part|>" + dumped(part);
    }
  }
  return text;
}

void open_turn(std::string& out, std::string_view role) {
  out += "<|im_start|>";
  out += role;
  out += '\n';
}

void add_turn(std::string& out, std::string_view role, std::string_view content) {
  open_turn(out, role);
  out += content;
  out += "<|im_end|>\n";
}

std::string role_of(const Json& message) {
  const auto it = message.is_object() ? message.find("role") : message.end();
  return message.is_object() && it != message.end() && it->is_string() ? it->get<std::string>()
                                                                       : std::string("user");
}

std::string message_text(const Json& message) {
  std::string text;
  if (!message.is_object()) return text;
  if (const auto it = message.find("content"); it != message.end()) text = content_text(*it);
  if (const auto it = message.find("tool_calls"); it != message.end() && !it->is_null())
    text += "<|tool_calls|>" + dumped(*it);
  return text;
}

// Renders the conversation. With `continues` the last message stays open and is what `continued`
// gets; else a turn of the assistant is opened.
void render_messages(const Json& messages, bool continues, bool open, std::string& out,
                     std::string& continued) {
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const std::string content = message_text(messages[i]);
    if (continues && i + 1 == messages.size()) {
      open_turn(out, role_of(messages[i]));
      out += content;
      continued = content;
      return;
    }
    add_turn(out, role_of(messages[i]), content);
  }
  if (open) open_turn(out, "assistant");
}

bool ends_with_assistant(const Json& messages) {
  return !messages.empty() && role_of(messages.back()) == "assistant";
}

void read_tools(const Reader& reader, std::string& prompt) {
  const Json* tools = reader.find("tools");
  if (tools == nullptr) return;
  if (tools->is_array() && tools->empty()) {
    if (!reader.llama())
      refuse(bad("BadRequestError", "tools must be a non-empty array or null", "tools"));
    return;
  }
  add_turn(prompt, "tools", dumped(*tools));
}

const Json& messages_of(const Reader& reader) {
  const Json* messages = reader.find("messages");
  if (messages == nullptr) reader.missing("messages");
  if (!messages->is_array()) {
    if (reader.llama())
      refuse(bad("invalid_request_error", "Expected 'messages' to be an array"));
    refuse(bad("Bad Request",
               "1 validation error:\n  {'type': 'list_type', 'loc': 'body.messages', 'msg': "
               "'Input should be a valid list'}",
               "body.messages"));
  }
  return *messages;
}

void read_chat(const Reader& reader, GenerateRequest& request) {
  const Json& messages = messages_of(reader);
  if (messages.empty() && !reader.llama())
    refuse(bad("BadRequestError", "messages must not be empty", "messages"));
  bool continues = reader.flag("continue_final_message");
  const bool open = reader.flag("add_generation_prompt", true);
  if (continues && open)
    refuse(bad(reader.llama() ? "invalid_request_error" : "BadRequestError",
               "Cannot set both `continue_final_message` and `add_generation_prompt` to True."));
  if (reader.llama() && ends_with_assistant(messages)) {
    continues = true;
    if (messages.size() > 1 && role_of(messages[messages.size() - 2]) == "assistant")
      refuse(bad("invalid_request_error",
                 "Cannot have 2 or more assistant messages at the end of the list."));
  }
  std::string prompt;
  read_tools(reader, prompt);
  render_messages(messages, continues, open, prompt, request.continued);
  request.prompts.push_back(std::move(prompt));
  request.echo = reader.llama() ? continues : reader.flag("echo") && continues;
}

std::string prompt_of_ids(const Json& ids) {
  std::string text;
  for (const Json& id : ids) {
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() > 0xFFFFFFFFull)
      refuse(bad("BadRequestError", "Token id " + dumped(id) + " is out of vocabulary"));
    append_token(text, id.get<std::uint32_t>());
  }
  return text;
}

void read_completions(const Reader& reader, GenerateRequest& request) {
  const Json* prompt = reader.find("prompt");
  request.echo = reader.flag("echo") && !reader.llama();
  if (prompt != nullptr && prompt->is_string()) {
    request.prompts.push_back(prompt->get<std::string>());
  } else if (prompt != nullptr && prompt->is_array() && !prompt->empty()) {
    if (prompt->front().is_number())
      request.prompts.push_back(prompt_of_ids(*prompt));
    else
      for (const Json& one : *prompt)
        request.prompts.push_back(one.is_array() ? prompt_of_ids(one) : content_text(one));
  }
  const bool hollow = std::any_of(request.prompts.begin(), request.prompts.end(),
                                  [](const std::string& text) { return text.empty(); });
  if (!request.prompts.empty() && (!hollow || reader.llama())) return;
  if (reader.llama()) refuse(bad("invalid_request_error", "'prompt' is required"));
  refuse(bad("BadRequestError",
             "Either prompt or prompt_embeds must be provided and non-empty. (parameter=prompt)",
             "prompt"));
}

void read_messages(const Reader& reader, GenerateRequest& request) {
  const Json& messages = messages_of(reader);
  std::string prompt;
  read_tools(reader, prompt);
  if (const Json* system = reader.find("system")) add_turn(prompt, "system", content_text(*system));
  render_messages(messages, ends_with_assistant(messages), true, prompt, request.continued);
  request.prompts.push_back(std::move(prompt));
}

void read_responses(const Reader& reader, GenerateRequest& request) {
  const Json* input = reader.find("input");
  if (input == nullptr) reader.missing("input");
  std::string prompt;
  read_tools(reader, prompt);
  const std::string instructions = reader.text("instructions");
  if (!instructions.empty()) add_turn(prompt, "system", instructions);
  if (input->is_array()) {
    std::string nothing;
    render_messages(*input, false, true, prompt, nothing);
  } else {
    add_turn(prompt, "user", content_text(*input));
    open_turn(prompt, "assistant");
  }
  request.prompts.push_back(std::move(prompt));
}

void read_stops(const Json* stop, GenerateRequest& request) {
  if (stop == nullptr) return;
  if (stop->is_string()) request.stops.push_back(stop->get<std::string>());
  if (!stop->is_array()) return;
  for (const Json& one : *stop)
    if (one.is_string()) request.stops.push_back(one.get<std::string>());
}

void read_limits(const Reader& reader, GenerateRequest& request) {
  for (const char* key :
       {"max_completion_tokens", "max_tokens", "max_output_tokens", "n_predict"}) {
    const auto value = reader.integer(key);
    if (!value || request.max_tokens) continue;
    if (reader.llama() && *value < -1)
      refuse(bad("invalid_request_error",
                 std::string("Field '") + key +
                     "': Value must be between -1 <= value <= 2147483647, but got " +
                     std::to_string(*value)));
    if (!reader.llama() && *value < 1)
      refuse(bad("BadRequestError", std::string(key) + " must be at least 1, got " +
                                        std::to_string(*value) + ". (parameter=" + key +
                                        ", value=" + std::to_string(*value) + ")",
                 key));
    // llama.cpp: -1 is no limit, and 0 still gives one token.
    if (*value >= 0) request.max_tokens = std::max<std::int64_t>(1, *value);
  }
  request.min_tokens = reader.integer("min_tokens").value_or(0);
  request.ignore_eos = reader.flag("ignore_eos");
  const auto temperature = reader.number("temperature");
  if (temperature && *temperature < 0 && !reader.llama()) {
    Json shown = *temperature;
    refuse(bad("BadRequestError",
               "temperature must be non-negative, got " + dumped(shown) +
                   ". (parameter=temperature, value=" + dumped(shown) + ")",
               "temperature"));
  }
  const auto n = reader.integer("n").value_or(1);
  if (n < 1 || n > 64)
    refuse(bad(reader.llama() ? "invalid_request_error" : "BadRequestError",
               "n must be between 1 and 64, got " + std::to_string(n) + ".", "n"));
  request.n = static_cast<int>(n);
}

void read_stream(const Reader& reader, GenerateRequest& request) {
  request.stream = reader.flag("stream");
  request.return_token_ids = reader.flag("return_token_ids");
  request.timings_per_token = reader.flag("timings_per_token");
  const Json* options = reader.find("stream_options");
  if (options == nullptr || !options->is_object()) return;
  if (!request.stream && !reader.llama())
    refuse(bad("BadRequestError", "Stream options can only be defined when `stream=True`.",
               "stream_options"));
  const auto set = [&](const char* key) {
    const auto it = options->find(key);
    return it != options->end() && it->is_boolean() && it->get<bool>();
  };
  request.include_usage = set("include_usage");
  request.continuous_usage = request.include_usage && set("continuous_usage_stats");
}

GenerateRequest generate_request(Api api, Dialect dialect, const Json& json) {
  const Reader reader(json, dialect);
  GenerateRequest request;
  request.api = api;
  request.model = reader.text("model");
  switch (api) {
    case Api::Chat: read_chat(reader, request); break;
    case Api::Completions: read_completions(reader, request); break;
    case Api::Messages: read_messages(reader, request); break;
    case Api::Responses: read_responses(reader, request); break;
  }
  read_limits(reader, request);
  read_stream(reader, request);
  read_stops(reader.find(api == Api::Messages ? "stop_sequences" : "stop"), request);
  request.cache_salt = reader.text("cache_salt");
  request.request_id = reader.text("request_id");
  if (api == Api::Messages && !request.max_tokens && dialect == Dialect::Vllm)
    reader.missing("max_tokens");
  return request;
}

Api guess(const Json& json) {
  if (json.contains("prompt")) return Api::Completions;
  return json.contains("input") ? Api::Responses : Api::Chat;
}

}  // namespace

Read<GenerateRequest> read_generate(Api api, Dialect dialect, std::string_view body) {
  return guarded<GenerateRequest>(
      dialect, body, [&](const Json& json) { return generate_request(api, dialect, json); });
}

Read<TokenizeRequest> read_tokenize(Dialect dialect, std::string_view body) {
  return guarded<TokenizeRequest>(dialect, body, [&](const Json& json) {
    const Reader reader(json, dialect);
    TokenizeRequest request;
    if (dialect == Dialect::LlamaCpp) {
      if (const Json* content = reader.find("content")) request.text = content_text(*content);
      request.pieces = reader.flag("with_pieces");
    } else if (reader.find("messages") != nullptr) {
      GenerateRequest chat;
      read_chat(reader, chat);
      request.text = chat.prompts.front();
      request.chat = true;
    } else {
      const Json* prompt = reader.find("prompt");
      if (prompt == nullptr) reader.missing("prompt");
      request.text = content_text(*prompt);
    }
    return request;
  });
}

Read<std::string> read_detokenize(std::string_view body) {
  return guarded<std::string>(Dialect::Vllm, body, [](const Json& json) {
    const Reader reader(json, Dialect::Vllm);
    const Json* tokens = reader.find("tokens");
    if (tokens == nullptr || !tokens->is_array()) reader.missing("tokens");
    return prompt_of_ids(*tokens);
  });
}

Read<std::vector<std::string>> read_embeddings(std::string_view body, std::string& model) {
  return guarded<std::vector<std::string>>(Dialect::Vllm, body, [&](const Json& json) {
    const Reader reader(json, Dialect::Vllm);
    model = reader.text("model");
    const Json* input = reader.find("input");
    if (input == nullptr) reader.missing("input");
    std::vector<std::string> texts;
    if (!input->is_array()) {
      texts.push_back(content_text(*input));
    } else if (!input->empty() && input->front().is_number()) {
      texts.push_back(prompt_of_ids(*input));
    } else {
      for (const Json& one : *input)
        texts.push_back(one.is_array() ? prompt_of_ids(one) : content_text(one));
    }
    return texts;
  });
}

Read<GenerateRequest> read_expect(std::optional<Api> api, Dialect dialect, std::string_view body) {
  return guarded<GenerateRequest>(dialect, body, [&](const Json& json) {
    const Reader reader(json, dialect);
    if (const Json* text = reader.find("text"); text != nullptr && !api) {
      GenerateRequest request;
      request.api = Api::Completions;
      request.prompts.push_back(content_text(*text));
      read_limits(reader, request);
      read_stops(reader.find("stop"), request);
      return request;
    }
    return generate_request(api.value_or(guess(json)), dialect, json);
  });
}

Read<FaultCommand> read_fault(std::string_view body) {
  return guarded<FaultCommand>(Dialect::Vllm, body, [](const Json& json) {
    const Reader reader(json, Dialect::Vllm);
    FaultCommand command;
    Fault& fault = command.fault;
    command.clear = reader.flag("clear");
    fault.status = static_cast<int>(reader.integer("status").value_or(0));
    if (fault.status != 0 && (fault.status < 400 || fault.status > 599))
      refuse(bad("BadRequestError", "status must be from 400 to 599", "status"));
    fault.retry_after = static_cast<int>(reader.integer("retry_after").value_or(-1));
    fault.cut_after_events = reader.integer("cut_after_events");
    fault.reset = reader.flag("reset");
    fault.cut_plain = reader.flag("cut_plain");
    fault.stall_after_events = reader.integer("stall_after_events");
    fault.garbage = reader.flag("garbage");
    fault.garbage_json = reader.flag("garbage_json");
    fault.error_event_after = reader.integer("error_event_after");
    fault.times = reader.integer("times").value_or(-1);
    fault.health_status = static_cast<int>(reader.integer("health_status").value_or(0));
    const std::int64_t stall = reader.integer("stall_ms").value_or(0);
    (fault.stall_after_events ? fault.stall_ms : command.stall_ms) = stall;
    if (reader.find("refuse") != nullptr) command.refuse = reader.flag("refuse");
    command.slow = reader.number("slow");
    if (command.slow && !(*command.slow > 0))
      refuse(bad("BadRequestError", "slow must be a factor above 0", "slow"));
    command.drop_cache = reader.flag("drop_cache");
    command.crash = reader.flag("crash");
    command.for_ms = reader.integer("for_ms").value_or(0);
    return command;
  });
}

}  // namespace signalbox::emulator
