// SPDX-License-Identifier: Apache-2.0
// Sums over data-parallel ranks; a list without entries tells nothing.
#include "io/engine/json_state.h"

#include <algorithm>
#include <map>

#include "io/engine/document.h"

namespace signalbox::engine {
std::optional<model::EngineState> read_loads(std::string_view body, int rank) {
  Document document(body);
  Value loads = document.root().array() ? document.root() : document.root().member("loads");
  if (!loads.array()) return std::nullopt;
  model::EngineState state;
  double usage = 0;
  int ranks = 0;
  for (std::size_t i = 0; i < loads.size(); ++i) {
    Value load = loads[i];
    if (rank >= 0 && load.small("dp_rank") != rank) continue;
    // /get_load counts waiting requests in num_reqs; /v1/loads tells running ones apart.
    int waiting = load.small("num_waiting_reqs");
    int running = load.small("num_running_reqs");
    if (running < 0 && load.small("num_reqs") >= 0) {
      running = std::max(load.small("num_reqs") - std::max(waiting, 0), 0);
    }
    state.running = add_told(state.running, running);
    state.waiting = add_told(state.waiting, waiting);
    state.slots = add_told(state.slots, load.small("max_running_requests"));
    std::int64_t tokens = load.whole("max_total_num_tokens");
    state.kv_capacity_tokens = add_told(state.kv_capacity_tokens, tokens);
    if (double share = load.number("token_usage"); share >= 0) {
      usage += std::min(share, 1.0);
      ++ranks;
    }
  }
  if (ranks > 0) state.kv_usage = usage / ranks;
  return state;
}

std::optional<model::EngineState> read_slots(std::string_view body) {
  Document document(body);
  Value list = document.root();
  if (!list.array()) return std::nullopt;
  model::EngineState state;
  state.slots = 0;
  state.running = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    Value slot = list[i];
    ++state.slots;
    state.running += slot.flag("is_processing") ? 1 : 0;
    state.kv_capacity_tokens = add_told(state.kv_capacity_tokens, slot.whole("n_ctx"));
    state.context_tokens = std::max(state.context_tokens, slot.whole("n_ctx"));
  }
  if (state.slots == 0) return std::nullopt;
  return state;
}

std::optional<Iterations> read_iterations(std::string_view body, int rank) {
  Document document(body);
  Value list = document.root();
  if (!list.array()) return std::nullopt;
  std::map<int, Value> newest;
  for (std::size_t i = 0; i < list.size(); ++i) {
    Value record = list[i];
    if (!record.object()) return std::nullopt;
    newest[std::max(record.small("attentionDpRank"), 0)] = record;
  }
  Iterations out;
  double used = 0;
  double blocks = 0;
  for (auto [own, record] : newest) {
    if (rank >= 0 && newest.size() > 1 && own != rank) continue;
    out.empty = false;
    out.state.running = add_told(out.state.running, record.small("numActiveRequests"));
    out.state.waiting = add_told(out.state.waiting, record.small("numQueuedRequests"));
    out.state.slots = add_told(out.state.slots, record.small("maxNumActiveRequests"));
    Value cache = record.member("kvCacheStats");
    double most = cache.number("maxNumBlocks");
    double tokens = cache.number("tokensPerBlock");
    if (most <= 0) continue;
    blocks += most;
    used += std::clamp(cache.number("usedNumBlocks"), 0.0, most);
    if (tokens > 0 && most * tokens < kToldMax) {
      out.state.kv_capacity_tokens = add_told(out.state.kv_capacity_tokens,
                                              static_cast<std::int64_t>(most * tokens));
    }
  }
  if (blocks > 0) out.state.kv_usage = used / blocks;
  if (out.state.slots == 0) out.state.slots = -1;
  return out;
}

}  // namespace signalbox::engine
