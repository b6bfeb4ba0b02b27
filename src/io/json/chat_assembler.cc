// SPDX-License-Identifier: Apache-2.0
// Assembles choices by index: text is joined, tool calls are joined by their own index, everything
// else is kept as it was said last. Catches the exceptions of the JSON library.
#include "io/json/chat_assembler.h"

#include <map>
#include <nlohmann/json.hpp>

#include "io/json/cursor.h"

namespace signalbox::json {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kDepthMax = 64;

bool joins(std::string_view key) {
  return key == "content" || key == "reasoning_content" || key == "reasoning" ||
         key == "refusal" || key == "text" || key == "arguments";
}

// Appends text to what is there; null or absent counts as empty, but stays when nothing comes.
void join(Json& to, const Json& from) {
  if (!from.is_string()) return;
  if (to.is_string()) {
    to.get_ref<std::string&>() += from.get_ref<const std::string&>();
  } else {
    to = from;
  }
}

void keep(Json& object, const std::string& key, const Json& value) {
  if (!value.is_null() || !object.contains(key)) object[key] = value;
}

// logprobs: lists inside are joined, whether they are named content, tokens or text_offset.
void join_logprobs(Json& to, const Json& from) {
  if (!from.is_object()) return;
  if (!to.is_object()) to = Json::object();
  for (const auto& [key, value] : from.items()) {
    Json& place = to[key];
    if (value.is_array() && place.is_array()) {
      place.insert(place.end(), value.begin(), value.end());
    } else if (!value.is_null() || place.is_null()) {
      place = value;
    }
  }
}

void join_function(Json& function, const Json& delta) {
  for (const auto& [key, value] : delta.items()) {
    if (joins(key)) {
      join(function[key], value);
    } else {
      keep(function, key, value);
    }
  }
}

void join_call(Json& call, const Json& delta) {
  for (const auto& [key, value] : delta.items()) {
    if (key == "index") continue;
    if (key == "function" && value.is_object()) {
      join_function(call["function"], value);
    } else {
      keep(call, key, value);
    }
  }
}

std::int64_t index_of(const Json& object) {
  const auto at = object.find("index");
  return at != object.end() && at->is_number_integer() ? at->get<std::int64_t>() : 0;
}

}  // namespace

struct ChatAssembler::State {
  struct Choice {
    Json fields = Json::object();   // of the choice itself
    Json message = Json::object();  // role, content, ...
    Json logprobs;
    std::map<std::int64_t, Json> calls;
  };

  bool chat = true;
  std::size_t room = 0;
  Json top = Json::object();
  std::map<std::int64_t, Choice> choices;

  void add(const Json& chunk);
  void add_choice(const Json& delta);
  void add_message(Choice& choice, const Json& delta);
  Json choice_object(std::int64_t index, const Choice& choice) const;
};

ChatAssembler::ChatAssembler(model::Api api, std::size_t bytes_max)
    : state_(std::make_unique<State>()) {
  state_->chat = api == model::Api::ChatCompletions;
  state_->room = bytes_max;
}
ChatAssembler::~ChatAssembler() = default;
ChatAssembler::ChatAssembler(ChatAssembler&&) noexcept = default;
ChatAssembler& ChatAssembler::operator=(ChatAssembler&&) noexcept = default;

void ChatAssembler::State::add_message(Choice& choice, const Json& delta) {
  for (const auto& [key, value] : delta.items()) {
    if (key == "tool_calls" && value.is_array()) {
      for (const Json& call : value) {
        if (call.is_object()) join_call(choice.calls[index_of(call)], call);
      }
    } else if (key == "function_call" && value.is_object()) {
      join_function(choice.message[key], value);
    } else if (joins(key) && value.is_string()) {
      join(choice.message[key], value);
    } else {
      keep(choice.message, key, value);
    }
  }
}

void ChatAssembler::State::add_choice(const Json& delta) {
  Choice& choice = choices[index_of(delta)];
  for (const auto& [key, value] : delta.items()) {
    if (key == "index") continue;
    if (key == "delta" && value.is_object()) {
      add_message(choice, value);
    } else if (key == "logprobs") {
      join_logprobs(choice.logprobs, value);
    } else if (key == "token_ids" && value.is_array() && choice.fields.contains(key) &&
               choice.fields[key].is_array()) {
      choice.fields[key].insert(choice.fields[key].end(), value.begin(), value.end());
    } else if (key == "text") {
      join(choice.fields[key], value);
    } else {
      keep(choice.fields, key, value);
    }
  }
}

void ChatAssembler::State::add(const Json& chunk) {
  for (const auto& [key, value] : chunk.items()) {
    if (key == "choices") {
      for (const Json& choice : value) {
        if (choice.is_object()) add_choice(choice);
      }
    } else if (key == "object") {
      top[key] = chat ? "chat.completion" : "text_completion";
    } else if (key != "obfuscation" && key != "prompt_progress") {
      keep(top, key, value);
    }
  }
}

Json ChatAssembler::State::choice_object(std::int64_t index, const Choice& choice) const {
  Json out = Json::object();
  out["index"] = index;
  if (chat) {
    Json message = choice.message;
    if (!message.contains("role")) message["role"] = "assistant";
    if (!message.contains("content")) message["content"] = nullptr;
    if (!choice.calls.empty()) {
      Json& calls = message["tool_calls"] = Json::array();
      for (const auto& [at, call] : choice.calls) calls.push_back(call);
      if (message["content"] == "") message["content"] = nullptr;
    }
    out["message"] = std::move(message);
  }
  for (const auto& [key, value] : choice.fields.items()) out[key] = value;
  out["logprobs"] = choice.logprobs;
  if (!out.contains("finish_reason")) out["finish_reason"] = nullptr;
  return out;
}

Result<void> ChatAssembler::add(std::string_view payload) {
  const auto broken = [](std::string message) {
    return Error{Code::BadUpstream, Source::Engine, true, std::move(message)};
  };
  if (payload.starts_with("[DONE]")) return {};
  if (payload.size() > state_->room) {
    return broken("The engine's answer is larger than may be held to assemble it.");
  }
  state_->room -= payload.size();
  // The JSON library recurses; our own check bounds the depth first.
  Cursor check(payload, kDepthMax);
  check.space();
  if (!check.skip(0)) return broken("The engine sent a stream event that is not valid JSON.");
  try {
    const Json chunk = Json::parse(payload);
    if (!chunk.is_object()) return broken("The engine sent a stream event that is no JSON object.");
    const auto error = chunk.find("error");
    if (error != chunk.end() && !error->is_null()) {
      return broken("The engine sent an error event inside its stream.");
    }
    state_->add(chunk);
  } catch (const nlohmann::json::exception&) {
    return broken("The engine sent a stream event that is not valid JSON.");
  }
  return {};
}

std::string ChatAssembler::finish() const {
  Json out = Json::object();
  Json choices = Json::array();
  for (const auto& [index, choice] : state_->choices) {
    choices.push_back(state_->choice_object(index, choice));
  }
  for (const auto& [key, value] : state_->top.items()) {
    if (key != "usage" && key != "timings") out[key] = value;
  }
  out["choices"] = std::move(choices);
  for (const char* key : {"usage", "timings"}) {
    if (state_->top.contains(key)) out[key] = state_->top[key];
  }
  return out.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace signalbox::json
