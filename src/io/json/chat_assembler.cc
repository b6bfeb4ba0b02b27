// SPDX-License-Identifier: Apache-2.0
// Assembles choices by index: text is joined, tool calls are joined by their own index, everything
// else is kept as it was said last. Values stay the text that the engine wrote: numbers keep their
// digits, and a character that was cut between two chunks is whole again once they are joined.
#include "io/json/chat_assembler.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "io/json/answer_walk.h"
#include "io/json/cursor.h"
#include "io/json/escape.h"

namespace signalbox::json {
namespace {

constexpr int kDepthMax = 64;
// In one object. Members are found one after the other, and no engine writes more than a few dozen.
constexpr std::size_t kMembersMax = 256;

struct Object;

struct Member {
  enum class Kind : std::uint8_t { Value, Text, List, Object };
  std::string key;                 // as written, without its quotes
  Kind kind = Kind::Value;
  std::string text = "null";       // Value: JSON; Text, List: what is inside quotes or brackets
  std::unique_ptr<Object> object;  // Object
};

struct Object {
  std::vector<Member> members;  // in the order in which they came

  const Member* find(std::string_view key) const {
    for (const Member& member : members) {
      if (member.key == key) return &member;
    }
    return nullptr;
  }
  Member* find(std::string_view key) {
    return const_cast<Member*>(std::as_const(*this).find(key));
  }
};

bool joins(std::string_view key) {
  return key == "content" || key == "reasoning_content" || key == "reasoning" ||
         key == "refusal" || key == "text" || key == "arguments";
}

void append_key(std::string& out, std::string_view key) {
  if (out.back() != '{') out += ',';
  ((out += '"') += key) += "\":";
}

void append_object(std::string& out, const Object& object);

void append_value(std::string& out, const Member& member) {
  switch (member.kind) {
    case Member::Kind::Value: out += member.text; return;
    case Member::Kind::Text: ((out += '"') += member.text) += '"'; return;
    case Member::Kind::List: ((out += '[') += member.text) += ']'; return;
    case Member::Kind::Object: return append_object(out, *member.object);
  }
}

void append_members(std::string& out, const Object& object) {
  for (const Member& member : object.members) {
    append_key(out, member.key);
    append_value(out, member);
  }
}

void append_object(std::string& out, const Object& object) {
  out += '{';
  append_members(out, object);
  out += '}';
}

std::string_view inside(std::string_view list) {
  list = list.substr(1, list.size() - 2);
  constexpr std::string_view kBlank = " \t\r\n";
  const std::size_t first = list.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return list.substr(first, list.find_last_not_of(kBlank) - first + 1);
}

// The `index` of the object at the cursor, which stays where it is.
bool index_of(Cursor c, int depth, std::int64_t& index) {
  return c.object(depth, [&](const Token& key) {
    return key.raw() == "index" ? read_integer(c, depth, index) : c.skip(depth);
  });
}

}  // namespace

struct ChatAssembler::State {
  struct Choice {
    Object fields;   // of the choice itself
    Object message;  // role, content, ...
    bool has_logprobs = false;
    Object logprobs;
    std::map<std::int64_t, Object> calls;
  };

  bool chat = true;
  std::size_t room = 0;
  std::size_t held = 0;  // about the memory that the answer takes
  bool error = false;
  bool crowded = false;  // an object has more members than kMembersMax
  Object top;
  std::map<std::int64_t, Choice> choices;

  // The member of that key, a new one if there is none; null: the object is crowded.
  Member* place(Object& object, std::string_view key);
  bool put(Member* member, Member::Kind kind, std::string_view text);
  bool append(Member* member, Member::Kind kind, std::string_view text);
  Object* inner(Object& object, std::string_view key);

  // Each reads the value at the cursor; false: a fault of syntax, or a crowded object.
  bool keep(Cursor& c, int depth, Object& object, std::string_view key);
  bool join(Cursor& c, int depth, Object& object, std::string_view key);
  bool join_list(Cursor& c, int depth, Object& object, std::string_view key);
  bool chunk(Cursor& c);
  bool choice(Cursor& c);
  bool message(Cursor& c, Choice& choice);
  bool function(Cursor& c, int depth, Object* into);
  bool call(Cursor& c, Choice& choice);

  void append_message(std::string& out, const Choice& choice) const;
  void append_choice(std::string& out, std::int64_t index, const Choice& choice) const;
};

ChatAssembler::ChatAssembler(model::Api api, std::size_t bytes_max)
    : state_(std::make_unique<State>()) {
  state_->chat = api == model::Api::ChatCompletions;
  state_->room = bytes_max;
}
ChatAssembler::~ChatAssembler() = default;
ChatAssembler::ChatAssembler(ChatAssembler&&) noexcept = default;
ChatAssembler& ChatAssembler::operator=(ChatAssembler&&) noexcept = default;

Member* ChatAssembler::State::place(Object& object, std::string_view key) {
  if (Member* found = object.find(key)) return found;
  if (object.members.size() >= kMembersMax) {
    crowded = true;
    return nullptr;
  }
  held += sizeof(Member) + key.size();
  Member& member = object.members.emplace_back();
  member.key = key;
  return &member;
}

bool ChatAssembler::State::put(Member* member, Member::Kind kind, std::string_view text) {
  if (member == nullptr) return false;
  held -= std::min(held, member->text.size());
  held += text.size();
  member->kind = kind;
  member->text = text;
  member->object.reset();
  return true;
}

bool ChatAssembler::State::append(Member* member, Member::Kind kind, std::string_view text) {
  if (member == nullptr || member->kind != kind) return put(member, kind, text);
  std::string& to = member->text;
  if (kind == Member::Kind::List && !to.empty() && !text.empty()) to += ',';
  to += text;
  held += text.size() + 1;
  return true;
}

Object* ChatAssembler::State::inner(Object& object, std::string_view key) {
  Member* const member = place(object, key);
  if (member == nullptr) return nullptr;
  if (member->kind != Member::Kind::Object) {
    put(member, Member::Kind::Object, {});
    member->object = std::make_unique<Object>();
  }
  return member->object.get();
}

// The last word counts, but null never replaces anything.
bool ChatAssembler::State::keep(Cursor& c, int depth, Object& object, std::string_view key) {
  const char* const first = c.p;
  if (!c.skip(depth)) return false;
  const std::string_view value(first, static_cast<std::size_t>(c.p - first));
  if (value == "null" && object.find(key) != nullptr) return true;
  return put(place(object, key), Member::Kind::Value, value);
}

bool ChatAssembler::State::join(Cursor& c, int depth, Object& object, std::string_view key) {
  if (c.peek() != '"') return keep(c, depth, object, key);
  Token token;
  if (!c.string(token)) return false;
  return append(place(object, key), Member::Kind::Text, token.raw());
}

bool ChatAssembler::State::join_list(Cursor& c, int depth, Object& object, std::string_view key) {
  if (c.peek() != '[') return keep(c, depth, object, key);
  const char* const first = c.p;
  if (!c.skip(depth)) return false;
  return append(place(object, key), Member::Kind::List,
                inside({first, static_cast<std::size_t>(c.p - first)}));
}

bool ChatAssembler::State::function(Cursor& c, int depth, Object* into) {
  return into != nullptr && c.object(depth, [&](const Token& key) {
    return joins(key.raw()) ? join(c, depth, *into, key.raw()) : keep(c, depth, *into, key.raw());
  });
}

bool ChatAssembler::State::call(Cursor& c, Choice& choice) {
  constexpr int kDepth = 6;
  std::int64_t index = 0;
  if (c.peek() != '{') return c.skip(kDepth - 1);
  if (!index_of(c, kDepth, index)) return c.skip(kDepth - 1);
  if (!choice.calls.contains(index)) held += sizeof(Object);
  Object& into = choice.calls[index];
  return c.object(kDepth, [&](const Token& key) {
    if (key.raw() == "index") return c.skip(kDepth);
    if (key.raw() == "function" && c.peek() == '{') {
      return function(c, kDepth + 1, inner(into, key.raw()));
    }
    return keep(c, kDepth, into, key.raw());
  });
}

bool ChatAssembler::State::message(Cursor& c, Choice& choice) {
  constexpr int kDepth = 4;
  return c.object(kDepth, [&](const Token& key) {
    const std::string_view name = key.raw();
    if (name == "tool_calls" && c.peek() == '[') {
      return c.array(kDepth + 1, [&] { return call(c, choice); });
    }
    if (name == "function_call" && c.peek() == '{') {
      return function(c, kDepth + 1, inner(choice.message, name));
    }
    return joins(name) ? join(c, kDepth, choice.message, name)
                       : keep(c, kDepth, choice.message, name);
  });
}

bool ChatAssembler::State::choice(Cursor& c) {
  constexpr int kDepth = 3;
  std::int64_t index = 0;
  if (c.peek() != '{') return c.skip(kDepth - 1);
  if (!index_of(c, kDepth, index)) return c.skip(kDepth - 1);
  if (!choices.contains(index)) held += sizeof(Choice);
  Choice& to = choices[index];
  return c.object(kDepth, [&](const Token& key) {
    const std::string_view name = key.raw();
    if (name == "index") return c.skip(kDepth);
    if (name == "delta" && c.peek() == '{') return message(c, to);
    if (name == "logprobs") {
      if (c.peek() != '{') return c.skip(kDepth);
      to.has_logprobs = true;
      return c.object(kDepth + 1, [&](const Token& list) {
        return join_list(c, kDepth + 1, to.logprobs, list.raw());
      });
    }
    if (name == "token_ids") return join_list(c, kDepth, to.fields, name);
    return name == "text" ? join(c, kDepth, to.fields, name) : keep(c, kDepth, to.fields, name);
  });
}

bool ChatAssembler::State::chunk(Cursor& c) {
  return c.object(1, [&](const Token& key) {
    const std::string_view name = key.raw();
    if (name == "choices") {
      if (c.peek() != '[') return c.skip(1);
      return c.array(2, [&] { return choice(c); });
    }
    if (name == "object") {
      const char* const kind = chat ? R"("chat.completion")" : R"("text_completion")";
      return put(place(top, name), Member::Kind::Value, kind) && c.skip(1);
    }
    if (name == "error") {
      Cursor ahead = c;
      bool truth = false;
      if (read_truth(ahead, 1, truth)) error = error || truth;
    }
    if (name == "obfuscation" || name == "prompt_progress") return c.skip(1);
    return keep(c, 1, top, name);
  });
}

Result<void> ChatAssembler::add(std::string_view payload) {
  const auto broken = [](std::string message) {
    return Error{Code::BadUpstream, Source::Engine, true, std::move(message)};
  };
  if (payload.starts_with("[DONE]")) return {};
  Cursor c(payload, kDepthMax);
  c.allow_halves();
  c.space();
  if (c.peek() != '{') return broken("The engine sent a stream event that is no JSON object.");
  const bool whole = state_->chunk(c);
  c.space();
  if (state_->crowded) {
    return broken("The engine sent an answer one of whose objects has too many members.");
  }
  if (!whole || !c.at_end()) {
    return broken("The engine sent a stream event that is not valid JSON.");
  }
  if (state_->error) return broken("The engine sent an error event inside its stream.");
  if (full()) return broken("The engine's answer is larger than may be held to assemble it.");
  return {};
}

bool ChatAssembler::full() const { return state_->held > state_->room; }

void ChatAssembler::State::append_message(std::string& out, const Choice& choice) const {
  append_key(out, "message");
  out += '{';
  const Member* const content = choice.message.find("content");
  for (const Member& member : choice.message.members) {
    append_key(out, member.key);
    // Beside calls an empty text is none.
    const bool none = &member == content && !choice.calls.empty() && member.text.empty();
    if (none) out += "null";
    else append_value(out, member);
  }
  if (choice.message.find("role") == nullptr) {
    append_key(out, "role");
    out += "\"assistant\"";
  }
  if (content == nullptr) {
    append_key(out, "content");
    out += "null";
  }
  if (!choice.calls.empty()) {
    append_key(out, "tool_calls");
    out += '[';
    for (const auto& [at, call] : choice.calls) {
      if (out.back() != '[') out += ',';
      append_object(out, call);
    }
    out += ']';
  }
  out += '}';
}

void ChatAssembler::State::append_choice(std::string& out, std::int64_t index,
                                         const Choice& choice) const {
  (out += "{\"index\":") += std::to_string(index);
  if (chat) append_message(out, choice);
  append_members(out, choice.fields);
  append_key(out, "logprobs");
  if (choice.has_logprobs) append_object(out, choice.logprobs);
  else out += "null";
  if (choice.fields.find("finish_reason") == nullptr) {
    append_key(out, "finish_reason");
    out += "null";
  }
  out += '}';
}

std::string ChatAssembler::finish(std::string_view model) const {
  const Object& top = state_->top;
  std::string out;
  out.reserve(state_->held + 256);
  out += '{';
  for (const Member& member : top.members) {
    if (member.key == "usage" || member.key == "timings") continue;
    append_key(out, member.key);
    const bool rename = member.key == "model" && !model.empty() && member.text.starts_with('"');
    if (rename) out += quote(model);
    else append_value(out, member);
  }
  append_key(out, "choices");
  out += '[';
  for (const auto& [index, choice] : state_->choices) {
    if (out.back() != '[') out += ',';
    state_->append_choice(out, index, choice);
  }
  out += ']';
  for (const char* key : {"usage", "timings"}) {
    const Member* const member = top.find(key);
    if (member == nullptr) continue;
    append_key(out, key);
    append_value(out, *member);
  }
  out += '}';
  return mended(std::move(out));
}

}  // namespace signalbox::json
