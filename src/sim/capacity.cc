// SPDX-License-Identifier: Apache-2.0
// Replays the prompts through one cache, then adds up an engine's time.
#include "sim/capacity.h"

#include <algorithm>
#include <list>
#include <map>
#include <utility>

#include "base/check.h"

namespace signalbox::sim {
namespace {

// Calls whose prefill is looked up in an engine's table; they stand for all.
constexpr std::size_t kSamples = 4000;

// Pieces of prompts in the order of their last use, by tokens.
class PieceCache {
 public:
  PieceCache(const trace::Trace& trace, std::int64_t tokens) : trace_(trace), room_(tokens) {}

  // Tokens at the front of the call's prompt that are here; afterwards all of it is.
  std::int64_t use(const trace::Call& call) {
    chain_.clear();
    for (std::int32_t i = call.last; i >= 0; i = piece(i).before) chain_.push_back(i);
    std::int64_t found = 0;
    bool whole = true;
    // What stands in front is used last, so that no piece outlives the one before it.
    for (auto i = chain_.rbegin(); i != chain_.rend(); ++i) {
      whole = whole && entries_.contains(key(*i, call));
      if (whole) found += piece(*i).tokens;
    }
    for (const std::int32_t i : chain_) touch(key(i, call), piece(i).tokens);
    while (used_ > room_ && !order_.empty()) drop_oldest();
    return found;
  }

 private:
  using Key = std::pair<std::int32_t, std::uint32_t>;  // piece, copy

  const trace::Piece& piece(std::int32_t i) const {
    return trace_.pieces[static_cast<std::size_t>(i)];
  }
  Key key(std::int32_t i, const trace::Call& call) const {
    return {i, piece(i).common ? 0 : call.copy};
  }

  void touch(Key key, std::int64_t tokens) {
    const auto [entry, fresh] = entries_.try_emplace(key);
    if (fresh) {
      order_.push_back(key);
      entry->second = std::prev(order_.end());
      used_ += tokens;
    } else {
      order_.splice(order_.end(), order_, entry->second);
    }
  }

  void drop_oldest() {
    used_ -= piece(order_.front().first).tokens;
    entries_.erase(order_.front());
    order_.pop_front();
  }

  const trace::Trace& trace_;
  std::int64_t room_;
  std::int64_t used_ = 0;
  std::list<Key> order_;
  std::map<Key, std::list<Key>::iterator> entries_;
  std::vector<std::int32_t> chain_;
};

struct Mean {
  double output = 0;    // tokens
  double resident = 0;  // KV tokens of a request, over its time in decode
  std::vector<std::pair<double, double>> prompts;  // fresh, cached
};

struct Seconds {
  double of_engine = 0;  // that a request takes of its time
  double service = 0;    // from its prefill to its end
};

Seconds seconds_each(const truth::EngineSpec& engine, const Mean& mean) {
  double prefill_ms = 0;
  for (const auto& [fresh, cached] : mean.prompts) {
    prefill_ms += engine.table.prefill_ms(fresh, cached) - engine.table.prefill_fixed_ms();
  }
  prefill_ms /= static_cast<double>(mean.prompts.size());
  const double room = static_cast<double>(engine.kv_tokens) / 2 / mean.resident;
  const double batch = std::clamp(room, 1.0, static_cast<double>(engine.sequences_max));
  const double step_ms = engine.table.decode_ms(batch, mean.resident) +
                         (engine.host_step_us + batch * engine.host_sequence_us) / 1e3;
  prefill_ms += engine.host_admission_us / 1e3;
  return {(prefill_ms + mean.output * step_ms / batch) / 1e3,
          (prefill_ms + mean.output * step_ms) / 1e3};
}

}  // namespace

Capacity capacity(const std::vector<EngineGroup>& groups, const trace::Trace& trace) {
  CHECK(!trace.calls.empty() && !groups.empty());
  std::int64_t kv = 0;
  for (const EngineGroup& group : groups) kv += group.count * group.spec.kv_tokens;
  PieceCache cache(trace, kv / 2);
  Mean mean;
  double prompts = 0, cached = 0, outputs = 0, held = 0;
  const std::size_t every = trace.calls.size() / kSamples + 1;
  for (std::size_t i = 0; i < trace.calls.size(); ++i) {
    const trace::Call& call = trace.calls[i];
    const auto prompt = static_cast<double>(call.prompt_tokens);
    const auto output = static_cast<double>(call.output_tokens);
    const auto found = static_cast<double>(cache.use(call));
    prompts += prompt;
    cached += found;
    outputs += output;
    held += output * (prompt + output / 2);
    if (i % every == 0) mean.prompts.emplace_back(prompt - found, found);
  }
  mean.output = outputs / static_cast<double>(trace.calls.size());
  mean.resident = held / outputs;
  Capacity result;
  result.cached_share = cached / prompts;
  for (const EngineGroup& group : groups) {
    const Seconds each = seconds_each(group.spec, mean);
    const double rate = group.count / each.of_engine;
    result.requests_per_second += rate;
    result.service_seconds += rate * each.service;
  }
  result.service_seconds /= result.requests_per_second;
  return result;
}

}  // namespace signalbox::sim
