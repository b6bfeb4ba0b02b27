// SPDX-License-Identifier: Apache-2.0
// A line costs a search for its end and one for the end of its name; the rest only if wanted.
#include "io/engine/metrics_text.h"

#include <charconv>
#include <cstring>

#include "base/check.h"

namespace signalbox::engine {
namespace {

constexpr std::size_t kShortestName = 8;

std::uint64_t load8(const char* bytes) {
  std::uint64_t word;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

// Names share beginnings (`vllm:request_`) and ends (`_seconds_sum`); with the middle and the
// length nearly all differ. A collision costs a comparison, not a wrong answer.
std::size_t hash_of(std::string_view name) {
  const char* data = name.data();
  std::uint64_t mixed = load8(data + name.size() - 8) + 3 * load8(data + (name.size() - 8) / 2);
  mixed = (mixed ^ name.size()) * 0x9E3779B97F4A7C15ull;
  return static_cast<std::size_t>(mixed >> 56);
}

bool blank(char c) { return c == ' ' || c == '\t'; }

void skip_blanks(std::string_view& text) {
  std::size_t n = 0;
  while (n < text.size() && blank(text[n])) ++n;
  text.remove_prefix(n);
}

bool label_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool label_rest(char c) { return label_start(c) || (c >= '0' && c <= '9'); }

// Takes `name="value"` off the front. False: the format is broken.
bool take_label(std::string_view& text, std::string_view& name, std::string_view& value) {
  std::size_t n = 0;
  if (text.empty() || !label_start(text[0])) return false;
  while (n < text.size() && label_rest(text[n])) ++n;
  name = text.substr(0, n);
  text.remove_prefix(n);
  if (text.size() < 2 || text[0] != '=' || text[1] != '"') return false;
  text.remove_prefix(2);
  for (n = 0; n < text.size() && text[n] != '"'; ++n) {
    if (text[n] != '\\') continue;
    if (++n == text.size()) return false;
    if (text[n] != '\\' && text[n] != '"' && text[n] != 'n') return false;
  }
  if (n == text.size()) return false;
  value = text.substr(0, n);
  text.remove_prefix(n + 1);
  return true;
}

// Takes the labels with their closing brace off the front of what follows the opening one.
bool take_labels(std::string_view& text, std::string_view& labels) {
  const char* begin = text.data();
  std::string_view name;
  std::string_view value;
  for (;;) {
    skip_blanks(text);
    if (text.empty()) return false;
    if (text[0] == '}') break;
    if (!take_label(text, name, value)) return false;
    skip_blanks(text);
    if (text.empty()) return false;
    if (text[0] == ',') {
      text.remove_prefix(1);
    } else if (text[0] != '}') {
      return false;
    }
  }
  labels = std::string_view(begin, static_cast<std::size_t>(text.data() - begin));
  text.remove_prefix(1);
  return true;
}

// What stands behind the labels: a number, and perhaps a timestamp that nobody asks for.
bool take_value(std::string_view text, double& value) {
  skip_blanks(text);
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (text.empty()) return true;
  if (!blank(text[0])) return false;
  skip_blanks(text);
  if (text.empty()) return true;
  std::int64_t timestamp = 0;
  auto [stop, bad] = std::from_chars(text.data(), text.data() + text.size(), timestamp);
  text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
  skip_blanks(text);
  return bad == std::errc{} && text.empty();
}

}  // namespace

WantedNames::WantedNames(std::vector<std::string_view> names) : names_(std::move(names)) {
  CHECK(names_.size() <= 64);
  table_.fill(-1);
  for (std::size_t i = 0; i < names_.size(); ++i) {
    CHECK(names_[i].size() >= kShortestName);
    std::size_t slot = hash_of(names_[i]);
    while (table_[slot] >= 0) slot = (slot + 1) % kSlots;
    table_[slot] = static_cast<std::int8_t>(i);
  }
}

int WantedNames::find(std::string_view name) const {
  if (name.size() < kShortestName) return -1;
  for (std::size_t slot = hash_of(name); table_[slot] >= 0; slot = (slot + 1) % kSlots) {
    if (names_[static_cast<std::size_t>(table_[slot])] == name) return table_[slot];
  }
  return -1;
}

bool MetricsScanner::next(Sample& sample) {
  while (!rest_.empty()) {
    const char* begin = rest_.data();
    const void* feed = std::memchr(begin, '\n', rest_.size());
    std::size_t size = feed ? static_cast<std::size_t>(static_cast<const char*>(feed) - begin)
                            : rest_.size();
    std::string_view line = rest_.substr(0, size);
    rest_.remove_prefix(feed ? size + 1 : size);
    if (line.empty() || line[0] == '#') continue;

    std::size_t n = 0;
    while (n < line.size() && line[n] != '{' && !blank(line[n])) ++n;
    sample.name = wanted_.find(line.substr(0, n));
    if (sample.name < 0) continue;

    line.remove_prefix(n);
    sample.labels = {};
    bool sound = feed != nullptr && !line.empty();
    if (sound && line[0] == '{') {
      line.remove_prefix(1);
      sound = take_labels(line, sample.labels);
    }
    if (sound && take_value(line, sample.value)) return true;
    ++broken_;
  }
  return false;
}

std::optional<std::string_view> label(std::string_view labels, std::string_view wanted) {
  std::string_view name;
  std::string_view value;
  for (;;) {
    skip_blanks(labels);
    if (!take_label(labels, name, value)) return std::nullopt;
    if (name == wanted) return value;
    skip_blanks(labels);
    if (labels.empty() || labels[0] != ',') return std::nullopt;
    labels.remove_prefix(1);
  }
}

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace signalbox::engine
