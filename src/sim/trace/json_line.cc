// SPDX-License-Identifier: Apache-2.0
// One pass over the line.
#include "sim/trace/json_line.h"

#include <charconv>

#include "sim/trace/table.h"

namespace signalbox::trace {
namespace {

constexpr int kDepthMax = 64;

bool is_scalar_end(char c) {
  return c == ',' || c == '}' || c == ']' || c == '{' || c == '[' || c == '"' || c == ':' ||
         c == ' ' || c == '\t';
}

}  // namespace

void JsonLine::space() {
  while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
}

bool JsonLine::take(char c) {
  space();
  if (at_ >= text_.size() || text_[at_] != c) return false;
  ++at_;
  return true;
}

bool JsonLine::expect(char c) {
  if (take(c)) return true;
  fail(std::string("`") + c + "`");
  return false;
}

void JsonLine::fail(std::string_view wanted) {
  if (fault_) return;
  const std::string_view found = text_.substr(std::min(at_, text_.size()));
  fault_ = "column " + std::to_string(at_ + 1) + " has " +
           (found.empty() ? "the line's end" : quoted(found)) + "; write " + std::string(wanted) +
           " there: each line is one JSON object.";
}

std::optional<std::string_view> JsonLine::string() {
  if (!expect('"')) return std::nullopt;
  const std::size_t from = at_;
  for (; at_ < text_.size(); ++at_) {
    if (text_[at_] == '\\') ++at_;
    else if (text_[at_] == '"') return text_.substr(from, at_++ - from);
  }
  fail("a closing quote");
  return std::nullopt;
}

std::optional<std::string_view> JsonLine::next_key() {
  if (fault_ || ended_) return std::nullopt;
  if (!begun_ && !expect('{')) return std::nullopt;
  if (take('}')) {
    ended_ = true;
    space();
    if (at_ < text_.size()) fail("nothing more");
    return std::nullopt;
  }
  if (begun_ && !expect(',')) return std::nullopt;
  begun_ = true;
  const auto key = string();
  if (!key || !expect(':')) return std::nullopt;
  return key;
}

std::int64_t JsonLine::integer() {
  if (fault_) return 0;
  space();
  std::int64_t value = 0;
  const char* const begin = text_.data() + at_;
  const char* const end = text_.data() + text_.size();
  auto [stop, error] = std::from_chars(begin, end, value);
  if (error == std::errc() && stop + 1 < end && *stop == '.' && stop[1] == '0') {
    for (++stop; stop < end && *stop == '0';) ++stop;
  }
  if (error != std::errc() || (stop < end && !is_scalar_end(*stop))) {
    fail("a whole number");
    return 0;
  }
  at_ += static_cast<std::size_t>(stop - begin);
  return value;
}

void JsonLine::integers(std::vector<std::int64_t>& out) {
  if (fault_ || !expect('[') || take(']')) return;
  do {
    out.push_back(integer());
  } while (!fault_ && take(','));
  if (!fault_) expect(']');
}

void JsonLine::skip_scalar() {
  const std::size_t from = at_;
  while (at_ < text_.size() && !is_scalar_end(text_[at_])) ++at_;
  if (at_ == from) fail("a value");
}

// Brackets are counted, not matched: what is passed over need not be right.
void JsonLine::skip() {
  int depth = 0;
  do {
    if (fault_) return;
    space();
    const char c = at_ < text_.size() ? text_[at_] : '\0';
    if (c == '"') string();
    else if (c == '[' || c == '{') ++at_, ++depth;
    else if (depth > 0 && (c == ']' || c == '}')) ++at_, --depth;
    else if (depth > 0 && (c == ',' || c == ':')) ++at_;
    else skip_scalar();
    if (depth > kDepthMax) fail("a value nested less deeply");
  } while (depth > 0);
}

}  // namespace signalbox::trace
