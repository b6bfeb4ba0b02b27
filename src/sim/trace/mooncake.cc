// SPDX-License-Identifier: Apache-2.0
// Reads lines of JSON of one known form and grows the tree of their blocks.
#include "sim/trace/mooncake.h"

#include <algorithm>
#include <charconv>
#include <unordered_map>

#include "sim/trace/json_line.h"
#include "sim/trace/table.h"

namespace signalbox::trace {
namespace {

constexpr std::string_view kWhat = "Mooncake trace";
constexpr std::int64_t kBlockTokens = 512;
constexpr std::size_t kBytesPerBlock = 16;          // of text, about
constexpr std::int64_t kMsMax = 1'000'000'000'000;  // 31 years

struct Line {
  std::int64_t timestamp = -1;
  std::int64_t input_length = -1;
  std::int64_t output_length = -1;
  bool has_ids = false;
};

class Reader {
 public:
  Result<Trace> read(std::string_view text);

 private:
  std::optional<std::string> read_line(std::string_view text, Line& line);
  std::optional<std::string> take(const Line& line);
  std::int32_t piece(std::int32_t before, std::int64_t id, std::int64_t tokens);
  void mark_common();

  Trace trace_;
  std::vector<std::int64_t> ids_;                          // of the present line
  std::unordered_map<std::uint64_t, std::int32_t> known_;  // pieces; looked up, never walked
  std::vector<std::int64_t> uses_;                         // calls through each piece
};

std::string wrong(std::string_view key, std::string_view cure) {
  return quoted(key) + " is missing or no number that it can be; write " + std::string(cure) + ".";
}

std::optional<std::string> Reader::read_line(std::string_view text, Line& line) {
  JsonLine json(text);
  ids_.clear();
  while (const auto key = json.next_key()) {
    if (*key == "timestamp") line.timestamp = json.integer();
    else if (*key == "input_length") line.input_length = json.integer();
    else if (*key == "output_length") line.output_length = json.integer();
    else if (*key == "hash_ids") line.has_ids = true, json.integers(ids_);
    else json.skip();
  }
  if (json.fault()) return *json.fault();
  return std::nullopt;
}

// The block of this id behind that piece, made if it is new.
std::int32_t Reader::piece(std::int32_t before, std::int64_t id, std::int64_t tokens) {
  const auto place = static_cast<std::uint64_t>(before) + 1;
  const std::uint64_t name = mixed(1, static_cast<std::uint64_t>(id));
  const std::uint64_t key = mixed(mixed(place, name), static_cast<std::uint64_t>(tokens));
  const auto next = static_cast<std::int32_t>(trace_.pieces.size());
  const auto [at, fresh] = known_.try_emplace(key, next);
  if (fresh) {
    trace_.pieces.push_back({before, name, tokens, false});
    uses_.push_back(0);
  }
  ++uses_[static_cast<std::size_t>(at->second)];
  return at->second;
}

std::optional<std::string> Reader::take(const Line& line) {
  if (line.timestamp < 0 || line.timestamp > kMsMax) {
    return wrong("timestamp", "milliseconds from the start, 0 to 1e12");
  }
  if (line.input_length < 1 || line.input_length > kTokensMax) {
    return wrong("input_length", "1 to 1e7 tokens");
  }
  if (line.output_length < 0 || line.output_length > kTokensMax) {
    return wrong("output_length", "0 to 1e7 tokens");
  }
  const std::int64_t blocks = (line.input_length + kBlockTokens - 1) / kBlockTokens;
  if (!line.has_ids || static_cast<std::int64_t>(ids_.size()) != blocks) {
    return "`hash_ids` has " + std::to_string(ids_.size()) + " ids; write one for each 512 tokens "
           "of `input_length`, the last may be of fewer: " + std::to_string(blocks) + ".";
  }
  Call call;
  call.at = std::chrono::milliseconds(line.timestamp);
  call.prompt_tokens = line.input_length;
  call.output_tokens = std::max<std::int64_t>(1, line.output_length);
  call.answer = mixed(2, trace_.calls.size());
  std::int64_t rest = line.input_length;
  for (const std::int64_t id : ids_) {
    call.last = piece(call.last, id, std::min(rest, kBlockTokens));
    rest -= kBlockTokens;
  }
  trace_.calls.push_back(call);
  return std::nullopt;
}

void Reader::mark_common() {
  const auto calls = static_cast<std::int64_t>(trace_.calls.size());
  for (std::size_t i = 0; i < uses_.size(); ++i) {
    trace_.pieces[i].common = calls > 1 && uses_[i] * 2 >= calls;
  }
}

Result<Trace> Reader::read(std::string_view text) {
  Lines lines(text);
  known_.reserve(text.size() / kBytesPerBlock);
  for (std::string_view line; lines.next(line);) {
    if (line.find_first_not_of(" \t") == std::string_view::npos) continue;
    Line parsed;
    if (auto fault = read_line(line, parsed)) return fault_at(kWhat, lines.number(), *fault);
    if (auto fault = take(parsed)) return fault_at(kWhat, lines.number(), *fault);
  }
  if (trace_.calls.empty()) return fault_at(kWhat, 1, "there is no request; write one a line.");
  sort_by_time(trace_.calls);
  trace_.lasts = trace_.calls.back().at;
  mark_common();
  return std::move(trace_);
}

}  // namespace

Result<Trace> read_mooncake(std::string_view text) { return Reader().read(text); }

}  // namespace signalbox::trace
