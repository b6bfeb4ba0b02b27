// SPDX-License-Identifier: Apache-2.0
// Payloads of answer streams: chat and text completions, Messages events, Responses events.
#include "io/json/chunk_reader.h"

namespace signalbox::json {
namespace {

constexpr int kDepthMax = 64;

}  // namespace

struct ChunkReader::Walk {
  Cursor c;
  Chunk chunk;
  bool ok = true;

  // Deltas of a chat choice, and the choice of a text completion.
  bool delta_member(std::string_view name, int depth, bool& content);
  bool delta(int depth, bool& content);
  bool choice(ChoiceSet& seen, ChoiceSet& finished);
  bool choices(ChoiceSet& seen, ChoiceSet& finished, bool& none);
  bool filled_container(int depth, bool& content);
  bool model_value(int depth);
  bool error(int depth);
  // A string value, for comparison with names; empty for other types.
  bool word(int depth, std::string_view& out);
};

bool ChunkReader::Walk::model_value(int depth) {
  const std::uint32_t first = c.offset();
  const bool is_string = c.peek() == '"';
  if (!c.skip(depth)) return false;
  if (is_string) chunk.model = {first, c.offset()};
  return true;
}

bool ChunkReader::Walk::error(int depth) {
  const std::uint32_t first = c.offset();
  bool truth = false;
  if (!read_truth(c, depth, truth)) return false;
  if (truth) {
    chunk.error = true;
    chunk.error_value = {first, c.offset()};
  }
  return true;
}

bool ChunkReader::Walk::word(int depth, std::string_view& out) {
  if (c.peek() != '"') return c.skip(depth);
  Token token;
  if (!c.string(token)) return false;
  out = token.raw();
  return true;
}

// An object or a list that is not empty.
bool ChunkReader::Walk::filled_container(int depth, bool& content) {
  const char first = c.peek();
  const char* const from = c.p;
  if (!c.skip(depth)) return false;
  content = content || ((first == '[' || first == '{') && c.p - from > 2);
  return true;
}

bool ChunkReader::Walk::delta_member(std::string_view name, int depth, bool& content) {
  switch (name.size()) {
    case 4:
      return name == "text" ? read_filled(c, depth, content) : c.skip(depth);
    case 7:
      return name == "content" || name == "refusal" ? read_filled(c, depth, content)
                                                    : c.skip(depth);
    case 9:
      return name == "reasoning" ? read_filled(c, depth, content) : c.skip(depth);
    case 10:
      return name == "tool_calls" ? filled_container(depth, content) : c.skip(depth);
    case 13:
      return name == "function_call" ? filled_container(depth, content) : c.skip(depth);
    case 17:
      return name == "reasoning_content" ? read_filled(c, depth, content) : c.skip(depth);
    default:
      return c.skip(depth);
  }
}

bool ChunkReader::Walk::delta(int depth, bool& content) {
  if (c.peek() != '{') return c.skip(depth);
  return c.object(depth + 1, [&](const Token& key) {
    return delta_member(key.raw(), depth + 1, content);
  });
}

bool ChunkReader::Walk::choice(ChoiceSet& seen, ChoiceSet& finished) {
  if (c.peek() != '{') return c.skip(2);
  std::int64_t index = 0;
  bool content = false, finish = false;
  const auto member = [&](const Token& key) {
    const std::string_view name = key.raw();
    if (name == "delta") return delta(3, content);
    if (name == "finish_reason") return read_filled(c, 3, finish);
    if (name == "index") return read_integer(c, 3, index);
    if (name == "text") return read_filled(c, 3, content);
    return c.skip(3);
  };
  if (!c.object(3, member)) return false;
  seen.add(index);
  if (content) ++chunk.contents;
  if (finish) {
    ++chunk.finishes;
    finished.add(index);
  }
  return true;
}

bool ChunkReader::Walk::choices(ChoiceSet& seen, ChoiceSet& finished, bool& none) {
  if (c.peek() != '[') return c.skip(1);
  none = true;
  return c.array(2, [&] {
    none = false;
    return choice(seen, finished);
  });
}

Chunk ChunkReader::read(std::string_view payload) {
  if (payload.starts_with("[DONE]")) {
    Chunk end;
    end.done = true;
    return end;
  }
  Walk walk{Cursor(payload, kDepthMax), {}};
  walk.c.allow_halves();
  walk.c.space();
  if (walk.c.peek() != '{' || payload.size() > 0xFFFFFFFE) {
    walk.chunk.malformed = true;
    return walk.chunk;
  }
  switch (api_) {
    case model::Api::Messages:
    case model::Api::CountTokens: read_messages(walk); break;
    case model::Api::Responses: read_responses(walk); break;
    default: read_openai(walk);
  }
  if (walk.ok) {
    walk.c.space();
    walk.ok = walk.c.at_end();
  }
  if (!walk.ok) {
    walk.chunk = {};
    walk.chunk.malformed = true;
  }
  return walk.chunk;
}

void ChunkReader::read_openai(Walk& walk) {
  Cursor& c = walk.c;
  bool none = false;
  std::string_view object;  // older vLLM servers: {"object":"error","message":…}
  std::uint32_t comma = 0;  // before the member being read; 0: it is the first
  bool cut_next = false;  // `usage` is the first member: the comma behind it goes
  const auto usage = [&](const Token& key) {
    const bool is_null = c.peek() == 'n';
    if (!read_usage(c, 1, usage_, walk.chunk.has_usage)) return false;
    if (is_null) {
      cut_next = comma == 0;
      walk.chunk.null_usage = {cut_next ? c.offset(key.data - 1) : comma, c.offset()};
    }
    return true;
  };
  const auto value = [&](const Token& key) {
    const std::string_view name = key.raw();
    switch (name.size()) {
      case 5:
        if (name == "model") return walk.model_value(1);
        if (name == "error") return walk.error(1);
        if (name == "usage") return usage(key);
        return c.skip(1);
      case 6:
        return name == "object" ? walk.word(1, object) : c.skip(1);
      case 7:
        if (name == "choices") return walk.choices(seen_, finished_, none);
        if (name == "timings") return read_timings(c, 1, timings_);
        if (name == "metrics") return read_metrics(c, 1, timings_);
        return c.skip(1);
      default:
        return c.skip(1);
    }
  };
  const auto member = [&](const Token& key) {
    if (!value(key)) return false;
    c.space();
    comma = c.offset();
    if (cut_next && c.peek() == ',') walk.chunk.null_usage.end = comma + 1;
    cut_next = false;
    return true;
  };
  walk.ok = c.object(1, member);
  walk.chunk.error = walk.chunk.error || object == "error";
  walk.chunk.usage_only = none && walk.chunk.has_usage;
}

void ChunkReader::read_messages(Walk& walk) {
  Cursor& c = walk.c;
  std::string_view type, block;
  bool content = false, stopped = false;
  const auto message = [&](const Token& key) {
    if (key.raw() == "usage") return read_usage(c, 2, usage_, walk.chunk.has_usage);
    return key.raw() == "model" ? walk.model_value(2) : c.skip(2);
  };
  const auto delta = [&](const Token& key) {
    const std::string_view name = key.raw();
    if (name == "text" || name == "thinking" || name == "partial_json") {
      return read_filled(c, 2, content);
    }
    return name == "stop_reason" ? read_filled(c, 2, stopped) : c.skip(2);
  };
  const auto content_block = [&](const Token& key) {
    return key.raw() == "type" ? walk.word(2, block) : c.skip(2);
  };
  const auto member = [&](const Token& key) {
    const std::string_view name = key.raw();
    if (name == "type") return walk.word(1, type);
    if (name == "usage") return read_usage(c, 1, usage_, walk.chunk.has_usage);
    if (name == "error") return walk.error(1);
    if (c.peek() != '{') return c.skip(1);
    if (name == "message") return c.object(2, message);
    if (name == "delta") return c.object(2, delta);
    if (name == "content_block") return c.object(2, content_block);
    return c.skip(1);
  };
  walk.ok = c.object(1, member);
  if (!walk.ok) return;
  walk.chunk.error = walk.chunk.error || type == "error";
  walk.chunk.done = type == "message_stop";
  if (type == "content_block_start") content = block == "tool_use";
  walk.chunk.contents = content ? 1 : 0;
  if (stopped) {
    walk.chunk.finishes = 1;
    finished_.add(0);
  }
}

void ChunkReader::read_responses(Walk& walk) {
  Cursor& c = walk.c;
  std::string_view type;
  bool filled = false;
  const auto response = [&](const Token& key) {
    const std::string_view name = key.raw();
    if (name == "usage") return read_usage(c, 2, usage_, walk.chunk.has_usage);
    if (name == "timings") return read_timings(c, 2, timings_);
    if (name == "error") return walk.error(2);
    return name == "model" ? walk.model_value(2) : c.skip(2);
  };
  const auto member = [&](const Token& key) {
    const std::string_view name = key.raw();
    if (name == "type") return walk.word(1, type);
    if (name == "delta") return read_filled(c, 1, filled);
    if (name == "error") return walk.error(1);
    if (name == "timings") return read_timings(c, 1, timings_);
    if (name == "response" && c.peek() == '{') return c.object(2, response);
    return c.skip(1);
  };
  walk.ok = c.object(1, member);
  if (!walk.ok) return;
  walk.chunk.error = walk.chunk.error || type == "error" || type == "response.failed";
  walk.chunk.done = type == "response.completed" || type == "response.incomplete" ||
                    type == "response.cancelled";
  walk.chunk.contents = filled && type.ends_with(".delta") ? 1 : 0;
  if (walk.chunk.done) {
    walk.chunk.finishes = 1;
    finished_.add(0);
  }
}

}  // namespace signalbox::json
