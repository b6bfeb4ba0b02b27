// SPDX-License-Identifier: Apache-2.0
// Typed values of a request body: the settings beside the prompt.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "io/json/scanner.h"

namespace signalbox::json {

// Consumes `null`. A word that only starts like it is a syntax fault.
bool Scanner::null() {
  return c_.peek() == 'n' && c_.literal("null");
}

bool Scanner::flag(Key key, bool& out) {
  switch (c_.peek()) {
    case 't':
      out = true;
      return c_.literal("true");
    case 'f':
      return c_.literal("false");
    default:
      return null() || refuse(key, "must be true or false");
  }
}

namespace {

// A whole number however it is written: engines take 16.0 and 1.6e1 for 16, as JSON Schema does.
std::optional<std::int64_t> whole_number(std::string_view text) {
  const char* const last = text.data() + text.size();
  std::int64_t value = 0;
  if (const auto [end, fault] = std::from_chars(text.data(), last, value); end == last) {
    return fault == std::errc() ? std::optional(value) : std::nullopt;
  }
  double real = 0;
  const auto [end, fault] = std::from_chars(text.data(), last, real);
  constexpr double kExact = 9007199254740992;  // 2^53: each whole number below is a double
  if (fault != std::errc() || end != last || real != std::trunc(real) || std::abs(real) > kExact) {
    return std::nullopt;
  }
  return static_cast<std::int64_t>(real);
}

}  // namespace

bool Scanner::integer(Key key, std::int64_t low, std::int64_t high, std::int64_t& out) {
  if (null()) return true;
  const char* const first = c_.p;
  const auto rule = [&] {
    c_.p = first;
    if (low == std::numeric_limits<std::int64_t>::min()) {
      return refuse(key, "must be a whole number of 64 bits");
    }
    return refuse(key, fmt::format("must be a whole number from {} to {}", low, high));
  };
  if (c_.peek() != '-' && (c_.peek() < '0' || c_.peek() > '9')) return rule();
  if (!c_.number()) return false;
  const auto value = whole_number({first, static_cast<std::size_t>(c_.p - first)});
  if (!value || *value < low || *value > high) return rule();
  out = *value;
  return true;
}

bool Scanner::small_integer(Key key, int low, int high, int& out) {
  std::int64_t value = out;
  if (!integer(key, low, high, value)) return false;
  out = static_cast<int>(value);
  return true;
}

bool Scanner::output_limit(Key key) {
  std::int64_t value = 0;
  // llama.cpp takes -1 for no limit; other engines refuse it in their own words.
  if (!integer(key, -1, limits_.output_tokens_max, value)) return false;
  if (value > 0) out_.output_max = out_.output_max == 0 ? value : std::min(out_.output_max, value);
  return true;
}

bool Scanner::short_string(Key key) {
  if (null()) return true;
  if (c_.peek() != '"') return refuse(key, "must be a string");
  Token token;
  if (!c_.string(token)) return false;
  if (token.size > static_cast<std::size_t>(limits_.name_bytes_max)) {
    return refuse(key, fmt::format("must not be longer than {} bytes", limits_.name_bytes_max));
  }
  return true;
}

bool Scanner::model_name() {
  if (c_.peek() != '"') return refuse(Key::Model, "must be a string");
  const std::uint32_t quote = c_.offset();
  if (!short_string(Key::Model)) return false;
  struct {
    std::string& out;
    void text(const char* data, std::size_t size) { out.append(data, size); }
  } sink{out_.model};
  c_.p = body_.data() + quote;
  static_cast<void>(c_.string(sink));
  return !out_.model.empty() || refuse(Key::Model, "must not be empty");
}

bool Scanner::logprobs() {
  if (c_.peek() == 't' || c_.peek() == 'f') return flag(Key::Logprobs, out_.logprobs);
  std::int64_t count = -1;
  if (!integer(Key::Logprobs, 0, limits_.logprobs_max, count)) return false;
  out_.logprobs = count >= 0;
  return true;
}

bool Scanner::stop_string(Key key) {
  if (c_.peek() != '"') return refuse(key, "must hold strings");
  Token token;
  if (!c_.string(token)) return false;
  if (token.size > static_cast<std::size_t>(limits_.stop_bytes_max)) {
    return refuse(key, fmt::format("has a string of more than {} bytes", limits_.stop_bytes_max));
  }
  if (++out_.stops > limits_.stop_max) return refuse_count(key, out_.stops, limits_.stop_max);
  return true;
}

bool Scanner::stop(Key key) {
  if (null()) return true;
  if (c_.peek() == '"') return stop_string(key);
  if (c_.peek() != '[') return refuse(key, "must be a string or an array of strings");
  return c_.array(2, [&] { return stop_string(key); });
}

bool Scanner::map(Key key, int most) {
  if (null()) return true;
  if (c_.peek() != '{') return refuse(key, "must be an object");
  int count = 0;
  return c_.object(2, [&](const Token&) {
    return ++count > most ? refuse_count(key, count, most) : c_.skip(2);
  });
}

bool Scanner::metadata() {
  if (null()) return true;
  if (c_.peek() != '{') return refuse(Key::Metadata, "must be an object");
  return c_.object(2, [&](const Token& token) {
    if (out_.metadata.size() >= static_cast<std::size_t>(limits_.metadata_max)) {
      return refuse_count(Key::Metadata, limits_.metadata_max + 1, limits_.metadata_max);
    }
    const std::uint32_t key = c_.offset(token.data - 1);
    const std::uint32_t value = c_.offset();
    if (!c_.skip(2)) return false;
    out_.metadata.push_back(
        {{key, key + static_cast<std::uint32_t>(token.size) + 2}, {value, c_.offset()}});
    return true;
  });
}

bool Scanner::stream_options() {
  if (null()) {
    out_.include_usage = IncludeUsage::NullOptions;
    return true;
  }
  if (c_.peek() != '{') return refuse(Key::StreamOptions, "must be an object");
  out_.include_usage = IncludeUsage::NotGiven;
  out_.options_empty = true;
  const auto member = [&](const Token& token) {
    out_.options_empty = false;
    const std::string_view name = c_.name(token);
    out_.continuous_usage = out_.continuous_usage || name == "continuous_usage_stats";
    if (name != "include_usage") return c_.skip(2);
    if (out_.include_usage_value) {
      return refuse(Key::StreamOptions, "must not give `include_usage` twice");
    }
    const std::uint32_t value = c_.offset();
    bool on = false;
    if (c_.peek() != 't' && c_.peek() != 'f' && c_.peek() != 'n') {
      return refuse(Key::StreamOptions, "must give true or false as `include_usage`");
    }
    if (!flag(Key::StreamOptions, on)) return false;
    out_.include_usage_value = {value, c_.offset()};
    out_.include_usage = on ? IncludeUsage::True : IncludeUsage::False;
    return true;
  };
  if (!c_.object(2, member)) return false;
  out_.options_close = c_.offset() - 1;
  return true;
}

// A pointer to state that one server holds.
bool Scanner::reference(Key key) {
  if (null()) return true;
  if (c_.peek() != '"' && (key != Key::Conversation || c_.peek() != '{')) {
    return refuse(key, "must be a string");
  }
  out_.stateful = true;
  return c_.skip(1);
}

}  // namespace signalbox::json
