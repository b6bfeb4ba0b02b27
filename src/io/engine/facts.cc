// SPDX-License-Identifier: Apache-2.0
// Member names of each dialect, and what is made of them when they are missing or zero.
#include "io/engine/facts.h"

#include <algorithm>
#include <utility>

#include "io/engine/document.h"

namespace signalbox::engine {
namespace {

Error not_an_answer(std::string_view path, std::string_view expected) {
  return Error{Code::BadUpstream, Source::Engine, true,
               "The engine's answer to GET " + std::string(path) + " is not " +
                   std::string(expected) + "."};
}

ModelInfo read_model(Value entry) {
  ModelInfo info;
  info.id = entry.text("id");
  info.root = entry.text("root", 4096);
  info.parent = entry.text("parent");
  info.owned_by = entry.text("owned_by");
  Value meta = entry.member("meta");
  info.context_tokens = entry.whole("max_model_len");           // vLLM, SGLang
  if (info.context_tokens <= 0) info.context_tokens = meta.whole("n_ctx");  // llama.cpp, a slot's
  if (info.context_tokens <= 0) info.context_tokens = entry.whole("context_length");
  if (info.context_tokens <= 0) info.context_tokens = -1;
  if (double params = meta.number("n_params"); params > 0) info.params_b = params * 1e-9;
  Value aliases = entry.member("aliases");
  for (std::size_t i = 0; i < aliases.size() && info.aliases.size() < 64; ++i) {
    std::string name = aliases[i].text();
    if (!name.empty() && name != info.id) info.aliases.push_back(std::move(name));
  }
  std::string status = entry.member("status").text("value");
  info.loaded = status.empty() || status == "loaded" || status == "sleeping";
  return info;
}

}  // namespace

Result<std::vector<ModelInfo>> parse_models(std::string_view body) {
  Document document(body);
  Value list = document.root().array() ? document.root() : document.root().member("data");
  if (!list.array()) return not_an_answer("/v1/models", "a list of models");
  std::vector<ModelInfo> models;
  for (std::size_t i = 0; i < list.size() && models.size() < kModelsMax; ++i) {
    ModelInfo info = read_model(list[i]);
    if (!info.id.empty()) models.push_back(std::move(info));
  }
  return models;
}

Result<Facts> parse_props(std::string_view body) {
  Document document(body);
  Value root = document.root();
  if (!root.object()) return not_an_answer("/props", "a JSON object");
  Facts facts;
  facts.version = root.text("build_info");
  facts.slots = root.small("total_slots");
  if (facts.slots == 0) facts.slots = -1;
  facts.context_tokens = root.member("default_generation_settings").whole("n_ctx");
  if (facts.context_tokens <= 0) facts.context_tokens = -1;
  if (facts.slots > 0 && facts.context_tokens > 0 &&
      facts.context_tokens < (std::int64_t{1} << 40)) {
    facts.kv_capacity_tokens = facts.slots * facts.context_tokens;
  }
  return facts;
}

Result<Facts> parse_server_info(std::string_view body) {
  Document document(body);
  Value root = document.root();
  if (!root.object()) return not_an_answer("/server_info", "a JSON object");
  Facts facts;
  facts.version = root.text("version");
  facts.context_tokens = root.whole("context_length");
  if (facts.context_tokens <= 0) facts.context_tokens = -1;
  facts.ranks = std::clamp(root.small("dp_size"), 1, 4096);
  Value states = root.member("internal_states");
  std::int64_t capacity = -1;
  int slots = -1;
  for (std::size_t i = 0; i < states.size(); ++i) {
    Value state = states[i];
    std::int64_t tokens = state.member("memory_usage").whole("token_capacity");
    if (tokens <= 0) tokens = state.whole("max_total_num_tokens");
    capacity = add_told(capacity, tokens);
    slots = add_told(slots, state.small("effective_max_running_requests_per_dp"));
  }
  if (capacity <= 0) {
    std::int64_t tokens = root.whole("max_total_num_tokens");  // of one rank
    if (tokens > 0 && tokens < kToldMax / facts.ranks) capacity = tokens * facts.ranks;
  }
  if (slots <= 0) slots = root.small("max_running_requests");
  facts.kv_capacity_tokens = capacity > 0 ? capacity : -1;
  facts.slots = slots > 0 ? slots : -1;
  return facts;
}

void merge(Facts& into, Facts from) {
  if (!from.models.empty()) into.models = std::move(from.models);
  if (!from.version.empty()) into.version = std::move(from.version);
  if (from.slots >= 0) into.slots = from.slots;
  if (from.ranks >= 0) into.ranks = from.ranks;
  if (from.kv_capacity_tokens >= 0) into.kv_capacity_tokens = from.kv_capacity_tokens;
  if (from.context_tokens >= 0) into.context_tokens = from.context_tokens;
}

void complete(model::EngineState& state, const Facts& facts, int rank) {
  int share = rank >= 0 && facts.ranks > 1 ? facts.ranks : 1;
  if (state.slots < 0 && facts.slots > 0) state.slots = std::max(facts.slots / share, 1);
  if (state.kv_capacity_tokens < 0 && facts.kv_capacity_tokens > 0) {
    state.kv_capacity_tokens = facts.kv_capacity_tokens / share;
  }
  if (state.context_tokens < 0) state.context_tokens = facts.context_tokens;
  if (state.context_tokens < 0) {
    for (const ModelInfo& info : facts.models) {
      state.context_tokens = std::max(state.context_tokens, info.context_tokens);
    }
  }
}

}  // namespace signalbox::engine
