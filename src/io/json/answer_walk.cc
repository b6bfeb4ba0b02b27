// SPDX-License-Identifier: Apache-2.0
// Values of answers: see answer_walk.h.
#include "io/json/answer_walk.h"

#include <algorithm>
#include <charconv>

namespace signalbox::json {
namespace {

bool at_number(const Cursor& c) { return c.peek() == '-' || (c.peek() >= '0' && c.peek() <= '9'); }

// What an engine counts beyond these it does not count: sums over many answers must not overflow.
constexpr std::int64_t kCountMax = 1'000'000'000;
constexpr double kMillisecondsMax = 1e9;

// `code`, a number or the text of one, here or in the objects that an error stands in.
bool read_code(Cursor& c, int depth, std::int64_t& out) {
  const auto member = [&](const Token& key) {
    const std::string_view name = key.raw();
    const bool around = name == "error" || name == "response";
    if (around && depth < 3 && c.peek() == '{') return read_code(c, depth + 1, out);
    if (name != "code") return c.skip(depth);
    if (c.peek() != '"') return read_integer(c, depth, out);
    Token text;
    if (!c.string(text)) return false;
    const char* const end = text.data + text.size;
    std::int64_t value = 0;
    const auto [stop, fault] = std::from_chars(text.data, end, value);
    if (fault == std::errc() && stop == end) out = value;
    return true;
  };
  return c.object(depth, member);
}

Duration from_ms(double ms) {
  return ms < 0 ? Duration{-1} : from_seconds(ms * 1e-3);
}

}  // namespace

model::Usage to_usage(model::Api api, const UsageParts& usage, const TimingParts& timings) {
  model::Usage out{usage.prompt, usage.cached, usage.completion};
  const bool anthropic = api == model::Api::Messages || api == model::Api::CountTokens;
  if (anthropic && usage.prompt >= 0) {
    out.prompt_tokens += std::max<std::int64_t>(usage.cache_read, 0) +
                         std::max<std::int64_t>(usage.cache_creation, 0);
    out.cached_tokens = usage.cache_read;
  }
  if (out.prompt_tokens < 0 && timings.prompt_n >= 0) {
    out.prompt_tokens = timings.prompt_n + std::max<std::int64_t>(timings.cache_n, 0);
  }
  if (out.cached_tokens < 0) out.cached_tokens = timings.cache_n;
  if (out.cached_tokens > out.prompt_tokens) out.cached_tokens = -1;  // more than there was
  if (out.completion_tokens < 0) out.completion_tokens = timings.predicted_n;
  return out;
}

model::EngineTimings to_timings(const TimingParts& timings) {
  return {from_ms(timings.queue_ms), from_ms(timings.prefill_ms), from_ms(timings.decode_ms),
          timings.prompt_n};
}

bool read_integer(Cursor& c, int depth, std::int64_t& out) {
  if (!at_number(c)) return c.skip(depth);
  const char* const first = c.p;
  if (!c.number()) return false;
  std::int64_t value = 0;
  const auto [end, fault] = std::from_chars(first, c.p, value);
  if (fault == std::errc() && end == c.p && value >= 0 && value <= kCountMax) out = value;
  return true;
}

bool read_milliseconds(Cursor& c, int depth, double& out) {
  if (!at_number(c)) return c.skip(depth);
  const char* const first = c.p;
  if (!c.number()) return false;
  double value = 0;
  const auto [end, fault] = std::from_chars(first, c.p, value);
  if (fault == std::errc() && end == c.p && value >= 0 && value <= kMillisecondsMax) out = value;
  return true;
}

bool read_usage(Cursor& c, int depth, UsageParts& out, bool& present) {
  if (c.peek() != '{') return c.skip(depth);
  present = true;
  const auto details = [&] {
    if (c.peek() != '{') return c.skip(depth + 1);
    return c.object(depth + 2, [&](const Token& key) {
      return key.raw() == "cached_tokens" ? read_integer(c, depth + 2, out.cached)
                                          : c.skip(depth + 2);
    });
  };
  return c.object(depth + 1, [&](const Token& key) {
    const std::string_view name = key.raw();
    if (name == "prompt_tokens" || name == "input_tokens") {
      return read_integer(c, depth + 1, out.prompt);
    }
    if (name == "completion_tokens" || name == "output_tokens") {
      return read_integer(c, depth + 1, out.completion);
    }
    if (name == "prompt_tokens_details" || name == "input_tokens_details") return details();
    if (name == "cache_read_input_tokens") return read_integer(c, depth + 1, out.cache_read);
    if (name == "cache_creation_input_tokens") {
      return read_integer(c, depth + 1, out.cache_creation);
    }
    return c.skip(depth + 1);
  });
}

bool read_timings(Cursor& c, int depth, TimingParts& out) {
  if (c.peek() != '{') return c.skip(depth);
  return c.object(depth + 1, [&](const Token& key) {
    const std::string_view name = key.raw();
    if (name == "cache_n") return read_integer(c, depth + 1, out.cache_n);
    if (name == "prompt_n") return read_integer(c, depth + 1, out.prompt_n);
    if (name == "predicted_n") return read_integer(c, depth + 1, out.predicted_n);
    if (name == "prompt_ms") return read_milliseconds(c, depth + 1, out.prefill_ms);
    if (name == "predicted_ms") return read_milliseconds(c, depth + 1, out.decode_ms);
    return c.skip(depth + 1);
  });
}

// vLLM counts the time to first token from the moment at which it scheduled the request, so it is
// the prefill without the queue.
bool read_metrics(Cursor& c, int depth, TimingParts& out) {
  if (c.peek() != '{') return c.skip(depth);
  return c.object(depth + 1, [&](const Token& key) {
    const std::string_view name = key.raw();
    if (name == "queue_time_ms") return read_milliseconds(c, depth + 1, out.queue_ms);
    if (name == "time_to_first_token_ms") return read_milliseconds(c, depth + 1, out.prefill_ms);
    if (name == "generation_time_ms") return read_milliseconds(c, depth + 1, out.decode_ms);
    return c.skip(depth + 1);
  });
}

int error_status(std::string_view payload) {
  constexpr int kNone = 502;
  Cursor c(payload, 128);
  c.allow_halves();
  c.space();
  std::int64_t code = 0;
  if (c.peek() != '{' || !read_code(c, 1, code)) return kNone;
  return code >= 400 && code <= 599 ? static_cast<int>(code) : kNone;
}

bool read_filled(Cursor& c, int depth, bool& filled) {
  if (c.peek() != '"') return c.skip(depth);
  Token token;
  if (!c.string(token)) return false;
  filled = filled || token.size != 0;
  return true;
}

bool read_truth(Cursor& c, int depth, bool& truth) {
  const char* const first = c.p;
  if (!c.skip(depth)) return false;
  const std::string_view value(first, static_cast<std::size_t>(c.p - first));
  truth = value != "null" && value != "false" && value != "\"\"" && value != "0";
  return true;
}

}  // namespace signalbox::json
