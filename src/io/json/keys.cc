// SPDX-License-Identifier: Apache-2.0
// Names of keys, and which API reads which.
#include "io/json/keys.h"

#include <cstring>

namespace signalbox::json {
namespace {

using model::Api;

constexpr unsigned bit(Api api) { return 1u << static_cast<unsigned>(api); }

constexpr unsigned kChat = bit(Api::ChatCompletions);
constexpr unsigned kText = bit(Api::Completions);
constexpr unsigned kVector = bit(Api::Embeddings);
constexpr unsigned kMessages = bit(Api::Messages) | bit(Api::CountTokens);
constexpr unsigned kResponses = bit(Api::Responses);
constexpr unsigned kAll = kChat | kText | kVector | kMessages | kResponses;

struct Entry {
  std::string_view name;
  unsigned apis;
};

constexpr std::array<Entry, kKeyCount> kEntries = {{
    {"model", kAll},
    {"stream", kAll},
    {"stream_options", kChat | kText},
    {"max_tokens", kChat | kText | kMessages},
    {"max_completion_tokens", kChat},
    {"max_output_tokens", kResponses},
    {"n", kChat | kText},
    {"best_of", kChat | kText},
    {"priority", kAll},
    {"cache_salt", kAll},
    {"user", kAll},
    {"metadata", kAll},
    {"prompt_cache_key", kAll},
    {"previous_response_id", kResponses},
    {"conversation", kResponses},
    {"tools", kChat | kMessages | kResponses},
    {"functions", kChat},
    {"stop", kChat | kText},
    {"stop_sequences", kMessages},
    {"logprobs", kChat | kText},
    {"top_logprobs", kChat | kText | kResponses},
    {"logit_bias", kChat | kText},
    {"messages", kChat | kMessages | kVector},
    {"prompt", kText},
    {"prompt_embeds", kText},
    {"input", kVector | kResponses},
    {"instructions", kResponses},
    {"system", kMessages},
    {"chat_template", kChat},
    {"chat_template_kwargs", kChat | kMessages},
    {"documents", kChat},
    {"reasoning_effort", kChat},
    {"response_format", kChat | kText},
    {"text", kResponses},
    {"json_schema", kChat | kText},
    {"guided_json", kChat | kText},
    {"structured_outputs", kChat | kText},
    {"output_format", kMessages},
    {"kv_transfer_params", kAll},
    {"bootstrap_host", kAll},
    {"bootstrap_port", kAll},
    {"bootstrap_room", kAll},
    {"data_parallel_rank", kAll},
    {"routed_dp_rank", kAll},
    {"disagg_prefill_dp_rank", kAll},
    {"data_parallel_rank_decode", kAll},
    {"disaggregated_params", kAll},
    {"nvext", kAll},
    {"id_slot", kAll},
    {"slot_id", kAll},
    {"ec_transfer_params", kAll},
    {"vllm_xargs", kAll},
    {"request_id", kAll},
    {"rid", kAll},
}};

constexpr std::size_t kNameMax = 25;

// Keys ordered by the length of their names; lengths[n]..lengths[n + 1] have n bytes.
struct Index {
  std::array<std::uint8_t, kKeyCount> keys{};
  std::array<std::uint8_t, kNameMax + 2> lengths{};
};

constexpr Index make_index() {
  Index index;
  std::uint8_t used = 0;
  for (std::size_t length = 0; length <= kNameMax; ++length) {
    index.lengths[length] = used;
    for (std::size_t i = 0; i < kKeyCount; ++i) {
      if (kEntries[i].name.size() == length) {
        index.keys[used++] = static_cast<std::uint8_t>(i);
      }
    }
  }
  index.lengths[kNameMax + 1] = used;
  return index;
}

constexpr Index kIndex = make_index();
static_assert(kIndex.lengths[kNameMax + 1] == kKeyCount);

}  // namespace

std::string_view name(Key key) { return kEntries[static_cast<std::size_t>(key)].name; }

Key find_key(Api api, std::string_view name) {
  if (name.size() > kNameMax) return Key::None;
  for (auto i = kIndex.lengths[name.size()]; i < kIndex.lengths[name.size() + 1]; ++i) {
    const Entry& entry = kEntries[kIndex.keys[i]];
    if (std::memcmp(entry.name.data(), name.data(), name.size()) != 0) continue;
    return (entry.apis & bit(api)) != 0 ? static_cast<Key>(kIndex.keys[i]) : Key::None;
  }
  return Key::None;
}

}  // namespace signalbox::json
