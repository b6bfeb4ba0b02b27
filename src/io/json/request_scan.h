// SPDX-License-Identifier: Apache-2.0
// scan(): one strict pass over a client's JSON body. It validates every byte, records where the
// keys stand that the gateway uses, and hashes the prompt's content for placement.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/model/event.h"
#include "core/model/prompt.h"
#include "io/json/keys.h"
#include "io/json/scan_limits.h"
#include "io/json/span.h"

namespace signalbox::json {

// One `"key":value` of the top-level object.
struct Member {
  std::uint32_t comma = 0;  // offset of the comma before it; 0: it is the first
  std::uint32_t begin = 0;  // offset of the key's opening quote
  Span value;               // empty: the key is absent
};

// What `stream_options` says about usage.
enum class IncludeUsage : std::uint8_t {
  NoOptions,    // stream_options is absent
  NullOptions,  // it is null
  NotGiven,     // it is an object without include_usage
  False,        // false or null
  True,
};

struct MetadataEntry {
  Span key;    // with quotes
  Span value;  // any JSON value
};

// All offsets are into the scanned body. Reuse one object: its vectors and strings keep their room.
struct RequestScan {
  const Member& member(Key key) const { return members[static_cast<std::size_t>(key)]; }
  bool has(Key key) const { return static_cast<bool>(member(key).value); }

  Key fault = Key::None;           // the key that an error is about, when it is about one

  std::array<Member, kKeyCount> members{};
  std::uint32_t close = 0;         // offset of the closing brace of the body
  int member_count = 0;            // keys at the top level, known or not

  std::string model;               // decoded
  bool stream = false;
  IncludeUsage include_usage = IncludeUsage::NoOptions;
  Span include_usage_value;        // the value of include_usage
  std::uint32_t options_close = 0; // offset of the closing brace of stream_options
  bool options_empty = false;      // stream_options is {}
  bool continuous_usage = false;   // it names continuous_usage_stats: usage with every chunk

  std::int64_t output_max = 0;     // the smallest of the max_* keys; 0: none is given
  int n = 1;
  int best_of = 0;                 // 0: not given
  std::int64_t priority = 0;       // 0 when not given; see has(Key::Priority)
  bool logprobs = false;
  int top_logprobs = 0;
  int tools = 0;
  int stops = 0;
  int messages = 0;                // messages, or input items of the Responses API
  int inputs = 0;                  // prompts of completions, inputs of embeddings
  std::int64_t prompt_tokens = -1; // exact when the prompt is given as token ids; -1: unknown
  bool has_images = false;         // images, audio or video in the messages
  bool stateful = false;           // previous_response_id or conversation is given
  std::vector<MetadataEntry> metadata;

  // The prompt, as blocks that are not chained yet; see README.md for what they cover.
  std::vector<model::PromptBlock> tool_blocks;
  std::vector<model::PromptBlock> message_blocks;
  std::int64_t prompt_bytes = 0;   // of all blocks
  model::Script script = model::Script::Latin;

  // Room for messages whose keys come in an unusual order.
  struct Reference {
    std::uint32_t name = 0, name_size = 0, key = 0, value = 0;
  };
  std::vector<Reference> scratch_members;
  std::string scratch_names;

  void clear();
};

// Fills `out`. An Error says what is wrong, with key and byte offset; then `out` is unspecified.
Result<void> scan(std::string_view body, model::Api api, const ScanLimits& limits,
                  RequestScan& out);

// The text of a string value given with its quotes, as recorded in a RequestScan.
std::string decode(std::string_view quoted);

}  // namespace signalbox::json
