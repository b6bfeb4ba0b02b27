// SPDX-License-Identifier: Apache-2.0
// What makes the prompt: tools and template arguments, messages, plain prompts, token ids. A
// message's blocks do not depend on the order of its keys: the role comes first, then long values
// by key, then short ones. Values are encoded while they are read as long as the keys come in that
// order; otherwise the message is read a second time.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "io/json/scanner.h"

namespace signalbox::json {
namespace {

// Tool blocks stand in this order, whatever the order in the body.
enum Stage : int { kTemplate, kKwargs, kDocuments, kEffort, kTools, kFunctions, kSystem, kStages };
static_assert(kStages <= 8);

// Ranks of small members. The role leads and decides when long values may be encoded.
constexpr int kRole = 0, kType = 1;

}  // namespace

int Scanner::stage(Key key) const {
  switch (key) {
    case Key::ChatTemplate: return kTemplate;
    case Key::ChatTemplateKwargs: return kKwargs;
    case Key::Documents: return kDocuments;
    case Key::ReasoningEffort: return kEffort;
    case Key::Tools: return kTools;
    case Key::Functions: return kFunctions;
    default: return kSystem;
  }
}

void Scanner::begin_stage() {
  encoder_.write_to(out_.tool_blocks);
  stage_begin_ = out_.tool_blocks.size();
}

// Ends a stage and moves its blocks before those of later stages.
void Scanner::end_stage(int stage) {
  encoder_.cut();
  auto& blocks = out_.tool_blocks;
  std::size_t place = 0;
  for (int i = 0; i < stage; ++i) place += stage_sizes_[static_cast<std::size_t>(i)];
  stage_sizes_[static_cast<std::size_t>(stage)] = blocks.size() - stage_begin_;
  const auto at = [&](std::size_t i) { return blocks.begin() + static_cast<std::ptrdiff_t>(i); };
  std::rotate(at(place), at(stage_begin_), blocks.end());
}

bool Scanner::template_argument(Key key) {
  if (null()) return true;
  const bool saw_media = walk_.saw_media();
  begin_stage();
  const std::string_view label = name(key);
  encoder_.text(label.data(), label.size());
  encoder_.mark(Mark::KeyEnd);
  if (!(key == Key::System ? walk_.content(1) : walk_.value(1))) return false;
  end_stage(stage(key));
  if (!saw_media && key != Key::System) walk_.forget_media();
  return true;
}

bool Scanner::tools(Key key) {
  if (null()) return true;
  if (c_.peek() != '[') return refuse(key, "must be an array");
  const bool saw_media = walk_.saw_media();
  begin_stage();
  const std::string_view label = name(key);
  encoder_.text(label.data(), label.size());
  encoder_.mark(Mark::KeyEnd);
  // A chat's tool has a function that has the schema; elsewhere the tool itself has it.
  const int schema_in = key == Key::Tools && api_ == model::Api::ChatCompletions ? 4 : 3;
  const auto tool = [&] {
    if (c_.peek() != '{') return refuse(key, "must hold objects");
    if (++out_.tools > limits_.tools_max) return refuse_count(key, out_.tools, limits_.tools_max);
    return with_schema(key, schema_in, [this] { return walk_.value(2); });
  };
  const int before = out_.tools;
  if (!c_.array(2, tool)) return false;
  if (out_.tools == before) encoder_.drop();  // no tools are no content
  end_stage(stage(key));
  if (!saw_media) walk_.forget_media();
  return true;
}

bool Scanner::messages(Key key) {
  if (c_.peek() != '[') return refuse(key, "must be an array of messages");
  encoder_.write_to(out_.message_blocks);
  if (!c_.array(2, [&] { return message(key); })) return false;
  return out_.messages > 0 || refuse(key, "must hold at least one message");
}

// `prompt` and `input`: a string, strings, token ids, lists of token ids, or input items.
bool Scanner::prompt(Key key) {
  if (null()) return true;
  encoder_.write_to(out_.message_blocks);
  const auto text = [&] {
    ++out_.inputs;
    if (!c_.string(encoder_)) return false;
    encoder_.mark(Mark::StringEnd);
    encoder_.cut();
    return out_.inputs <= limits_.inputs_max || refuse_count(key, out_.inputs, limits_.inputs_max);
  };
  if (c_.peek() == '"') return text();
  if (c_.peek() != '[') return refuse(key, "must be a string or an array");
  bool ids = false;
  const auto element = [&] {
    switch (c_.peek()) {
      case '"': return text();
      case '[': {
        if (++out_.inputs > limits_.inputs_max) {
          return refuse_count(key, out_.inputs, limits_.inputs_max);
        }
        return token_ids(key);
      }
      case '{':
        if (api_ == model::Api::Responses) return message(key);
        return refuse(key, "must hold strings or token ids");
      default:
        if (!ids) ++out_.inputs;
        ids = true;
        return token_id() || refuse(key, "must hold strings or token ids");
    }
  };
  if (!c_.array(2, element)) return false;
  encoder_.cut();
  return true;
}

bool Scanner::token_ids(Key key) {
  const auto id = [&] { return token_id() || refuse(key, "must hold whole numbers as token ids"); };
  if (!c_.array(3, id)) return false;
  encoder_.cut();
  return true;
}

// A token id counts as four bytes, about as many as its text has.
bool Scanner::token_id() {
  const char* const first = c_.p;
  std::uint32_t id = 0;
  if (c_.peek() < '0' || c_.peek() > '9' || !c_.number()) return false;
  const auto [end, fault] = std::from_chars(first, c_.p, id);
  if (fault != std::errc() || end != c_.p) {
    c_.p = first;
    return false;
  }
  const char bytes[4] = {static_cast<char>(id), static_cast<char>(id >> 8),
                         static_cast<char>(id >> 16), static_cast<char>(id >> 24)};
  encoder_.text(bytes, sizeof bytes);
  out_.prompt_tokens = std::max<std::int64_t>(out_.prompt_tokens, 0) + 1;
  return true;
}

int Scanner::small_rank(std::string_view name) {
  switch (name.size()) {
    case 2: return name == "id" ? 3 : -1;
    case 4: return name == "role" ? kRole : name == "type" ? kType : name == "name" ? 2 : -1;
    case 7: return name == "call_id" ? 4 : -1;
    case 12: return name == "tool_call_id" ? 5 : -1;
    default: return -1;
  }
}

bool Scanner::message(Key key) {
  if (c_.peek() != '{') return refuse(key, "must hold objects");
  if (++out_.messages > limits_.messages_max) {
    return refuse_count(key, out_.messages, limits_.messages_max);
  }
  const std::uint32_t begin = c_.offset();
  message_ = {};
  message_.first_block = out_.message_blocks.size();
  if (!c_.object(3, [this](const Token& token) { return message_member(token); })) return false;
  if (!message_.in_order) return message_in_order(begin);
  for (int i = message_.encoding ? 1 : 0; i < kSmallKeys; ++i) {
    if (!encode_small(i)) return false;
  }
  encoder_.mark(Mark::ObjectEnd);
  encoder_.cut();
  return true;
}

bool Scanner::message_member(const Token& token) {
  const std::string_view name = c_.name(token);
  const int rank = small_rank(name);
  if (rank < 0) return name == "cache_control" ? c_.skip(3) : message_bulk(token, name);
  auto& value = message_.value[static_cast<std::size_t>(rank)];
  if (value != 0) {
    c_.p = token.data - 1;
    return refuse(out_.has(Key::Messages) ? Key::Messages : Key::Input,
                  fmt::format("has a message with two keys `{}`", name));
  }
  message_.key[static_cast<std::size_t>(rank)] = c_.offset(token.data - 1);
  value = c_.offset();
  if (rank == kRole && message_.encoding) give_up_order();
  return c_.skip(3);
}

// A value that may be long: encoded at once where the order of keys allows it.
bool Scanner::message_bulk(const Token& token, std::string_view name) {
  const bool is_content = name == "content";
  if (is_content && message_.has_content) {
    c_.p = token.data - 1;
    return refuse(out_.has(Key::Messages) ? Key::Messages : Key::Input,
                  "has a message with two keys `content`");
  }
  message_.has_content = message_.has_content || is_content;
  const bool led = message_.value[kRole] != 0 || message_.value[kType] != 0;
  if (message_.in_order && (!led || token.escaped || name <= message_.last_bulk)) give_up_order();
  if (!message_.in_order) return c_.skip(3);
  if (!message_.encoding && !encode_small(kRole)) return false;
  message_.encoding = true;
  message_.last_bulk = name;
  walk_.key(token);
  return is_content ? walk_.content(3) : walk_.value(3);
}

// Forgets the blocks of this message; message_in_order() makes them anew.
void Scanner::give_up_order() {
  message_.in_order = false;
  encoder_.drop();
  out_.message_blocks.resize(message_.first_block);
}

bool Scanner::encode_small(int small) {
  const auto i = static_cast<std::size_t>(small);
  return message_.value[i] == 0 || encode_at(message_.key[i], message_.value[i]);
}

// Encodes a member that was read before.
bool Scanner::encode_at(std::uint32_t key, std::uint32_t value) {
  const char* const here = c_.p;
  Token token;
  c_.p = body_.data() + key;
  if (!c_.string(token)) return false;
  const bool is_content = c_.name(token) == "content";
  walk_.key(token);
  c_.p = body_.data() + value;
  if (!(is_content ? walk_.content(3) : walk_.value(3))) return false;
  c_.p = here;
  return true;
}

// The second reading of the message at `begin`, which is known to be valid.
bool Scanner::message_in_order(std::uint32_t begin) {
  auto& members = out_.scratch_members;
  auto& names = out_.scratch_names;
  members.clear();
  names.clear();
  c_.p = body_.data() + begin;
  const auto collect = [&](const Token& token) {
    const std::string_view name = c_.name(token);
    if (small_rank(name) < 0 && name != "cache_control") {
      members.push_back({static_cast<std::uint32_t>(names.size()),
                         static_cast<std::uint32_t>(name.size()), c_.offset(token.data - 1),
                         c_.offset()});
      names += name;
    }
    return c_.skip(3);
  };
  if (!c_.object(3, collect)) return false;
  const auto name_of = [&](const RequestScan::Reference& r) {
    return std::string_view(names).substr(r.name, r.name_size);
  };
  std::sort(members.begin(), members.end(), [&](const auto& a, const auto& b) {
    const int order = name_of(a).compare(name_of(b));
    return order != 0 ? order < 0 : a.value < b.value;
  });
  if (!encode_small(kRole)) return false;
  for (const auto& m : members) {
    if (!encode_at(m.key, m.value)) return false;
  }
  for (int i = kRole + 1; i < kSmallKeys; ++i) {
    if (!encode_small(i)) return false;
  }
  encoder_.mark(Mark::ObjectEnd);
  encoder_.cut();
  return true;
}

}  // namespace signalbox::json
