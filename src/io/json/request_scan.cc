// SPDX-License-Identifier: Apache-2.0
// The top level of a request body.
#include "io/json/request_scan.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <limits>

#include "io/json/scanner.h"

namespace signalbox::json {
namespace {

// Offset of the first byte that is not part of valid UTF-8.
std::size_t first_bad_utf8(std::string_view text) {
  std::size_t low = 0;  // everything before it is valid
  for (std::size_t next = 4096; next < text.size(); next = low + 4096) {
    while (next > low && (static_cast<unsigned char>(text[next]) & 0xC0) == 0x80) --next;
    if (next == low || !simdjson::validate_utf8(text.data() + low, next - low)) break;
    low = next;
  }
  while (low < text.size()) {
    const auto lead = static_cast<unsigned char>(text[low]);
    const std::size_t size = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    if (low + size > text.size() || !simdjson::validate_utf8(text.data() + low, size)) break;
    low += size;
  }
  return low;
}

}  // namespace

void RequestScan::clear() {
  fault = Key::None;
  members.fill({});
  close = 0;
  member_count = 0;
  model.clear();
  stream = false;
  include_usage = IncludeUsage::NoOptions;
  include_usage_value = {};
  continuous_usage = false;
  options_close = 0;
  options_empty = false;
  output_max = 0;
  n = 1;
  best_of = 0;
  priority = 0;
  logprobs = false;
  top_logprobs = tools = stops = messages = inputs = 0;
  prompt_tokens = -1;
  has_images = stateful = false;
  metadata.clear();
  tool_blocks.clear();
  message_blocks.clear();
  prompt_bytes = 0;
  script = model::Script::Latin;
}

Result<void> scan(std::string_view body, model::Api api, const ScanLimits& limits,
                  RequestScan& out) {
  out.clear();
  if (body.size() >= std::numeric_limits<std::uint32_t>::max()) {
    return Error{Code::TooLarge, Source::Client, false, "The request body exceeds 4 GiB."};
  }
  if (body.empty()) {
    return invalid("The request body is empty; a JSON object is expected.");
  }
  if (!simdjson::validate_utf8(body.data(), body.size())) {
    return invalid(fmt::format("The request body is not valid UTF-8 at byte {}.",
                               first_bad_utf8(body)));
  }
  return Scanner(body, api, limits, out).run();
}

Result<void> Scanner::run() {
  encoder_.reset_samples();
  if (!top() || !check_required()) return error();
  out_.has_images = walk_.saw_media();
  out_.script = encoder_.script();
  for (const auto& block : out_.tool_blocks) out_.prompt_bytes += block.bytes;
  for (const auto& block : out_.message_blocks) out_.prompt_bytes += block.bytes;
  return {};
}

bool Scanner::top() {
  c_.space();
  if (c_.peek() != '{') return c_.fail("the body must be a JSON object");
  const auto each = [this](const Token& token) {
    const Key key = find_key(api_, c_.name(token));
    const std::uint32_t comma = comma_;
    ++out_.member_count;
    if (key == Key::None) {
      if (!c_.skip(1)) return false;
    } else {
      Member& m = out_.members[static_cast<std::size_t>(key)];
      const std::uint32_t begin = c_.offset(token.data - 1);
      if (m.value) {
        c_.p = token.data - 1;
        return refuse(key, "must not be given twice");
      }
      const std::uint32_t value = c_.offset();
      m = {comma, begin, {value, value + 1}};
      if (!member(key)) return false;
      m.value.end = c_.offset();
    }
    c_.space();
    comma_ = c_.offset();  // of the comma, when another member follows
    return true;
  };
  if (!c_.object(1, each)) return false;
  out_.close = c_.offset() - 1;
  c_.space();
  return c_.at_end() || c_.fail("text follows the end of the JSON object");
}

bool Scanner::member(Key key) {
  switch (key) {
    case Key::Model: return model_name();
    case Key::Stream: return flag(key, out_.stream);
    case Key::StreamOptions: return stream_options();
    case Key::MaxTokens:
    case Key::MaxCompletionTokens:
    case Key::MaxOutputTokens: return output_limit(key);
    case Key::N: return small_integer(key, 1, limits_.n_max, out_.n);
    case Key::BestOf: return small_integer(key, 0, limits_.best_of_max, out_.best_of);
    case Key::Priority:
      return integer(key, std::numeric_limits<std::int64_t>::min(),
                     std::numeric_limits<std::int64_t>::max(), out_.priority);
    case Key::CacheSalt:
    case Key::User:
    case Key::PromptCacheKey: return short_string(key);
    case Key::Metadata: return metadata();
    case Key::PreviousResponseId:
    case Key::Conversation: return reference(key);
    case Key::Tools:
    case Key::Functions: return tools(key);
    case Key::Stop:
    case Key::StopSequences: return stop(key);
    case Key::Logprobs: return logprobs();
    case Key::TopLogprobs:
      return small_integer(key, 0, limits_.top_logprobs_max, out_.top_logprobs);
    case Key::LogitBias: return map(key, limits_.logit_bias_max);
    case Key::Messages: return messages(key);
    case Key::Prompt: return prompt(key);
    case Key::Input: return prompt(key);
    case Key::Instructions:
    case Key::System:
    case Key::ChatTemplate:
    case Key::ChatTemplateKwargs:
    case Key::Documents:
    case Key::ReasoningEffort: return template_argument(key);
    case Key::ResponseFormat:
    case Key::Text: return with_schema(key, 3, [this] { return c_.skip(1); });
    case Key::StructuredOutputs:
    case Key::OutputFormat: return with_schema(key, 2, [this] { return c_.skip(1); });
    case Key::JsonSchema:
    case Key::GuidedJson: return with_schema(key, 1, [this] { return c_.skip(1); });
    case Key::PromptEmbeds:
    case Key::KvTransferParams:
    case Key::BootstrapHost:
    case Key::BootstrapPort:
    case Key::BootstrapRoom:
    case Key::DataParallelRank:
    case Key::RoutedDpRank:
    case Key::DisaggPrefillDpRank:
    case Key::DpRankOfDecode:
    case Key::DisaggregatedParams:
    case Key::Nvext:
    case Key::IdSlot:
    case Key::SlotId:
    case Key::EcTransferParams:
    case Key::VllmXargs:
    case Key::RequestId:
    case Key::Rid:
    case Key::None: break;
  }
  return c_.skip(1);
}

bool Scanner::check_required() {
  const auto missing = [this](Key key) {
    out_.fault = key;
    refusal_ = fmt::format("The key `{}` is required.", name(key));
    return false;
  };
  if (!out_.has(Key::Model)) return missing(Key::Model);
  switch (api_) {
    case model::Api::ChatCompletions:
    case model::Api::Messages:
    case model::Api::CountTokens:
      return out_.has(Key::Messages) || missing(Key::Messages);
    case model::Api::Completions:
      return out_.has(Key::Prompt) || out_.has(Key::PromptEmbeds) || missing(Key::Prompt);
    case model::Api::Embeddings:
      return out_.has(Key::Input) || out_.has(Key::Messages) || missing(Key::Input);
    case model::Api::Responses:
      return true;  // a stored prompt or an earlier response may stand for the input
  }
  return true;
}

Error Scanner::error() const {
  if (!refusal_.empty()) return invalid(refusal_);
  return invalid(fmt::format("The request body is not valid JSON: {} (byte {}).",
                             c_.what != nullptr ? c_.what : "it is malformed", c_.offset()));
}

bool Scanner::refuse(Key key, std::string_view rule) {
  if (c_.what == nullptr && refusal_.empty()) {
    out_.fault = key;
    refusal_ = fmt::format("The key `{}` {} (byte {}).", name(key), rule, c_.offset());
  }
  return false;
}

bool Scanner::refuse_count(Key key, std::int64_t count, std::int64_t most) {
  return refuse(key, fmt::format("has {} entries or more; at most {} are allowed", count, most));
}

std::string decode(std::string_view quoted) {
  struct {
    std::string out;
    void text(const char* data, std::size_t size) { out.append(data, size); }
  } sink;
  Cursor cursor(quoted, 1);
  if (cursor.peek() == '"') static_cast<void>(cursor.string(sink));
  return std::move(sink.out);
}

}  // namespace signalbox::json
