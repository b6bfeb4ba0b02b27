// SPDX-License-Identifier: Apache-2.0
// Replays the prompts through one cache, then adds up an engine's time.
#include "sim/capacity.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <list>
#include <numeric>
#include <queue>
#include <unordered_map>
#include <utility>

#include "base/check.h"

namespace signalbox::sim {
namespace {

// Calls whose prefill is looked up in an engine's table; they stand for all.
constexpr std::size_t kSamples = 4000;
constexpr int kSteps = 8;

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
  using Key = std::uint64_t;  // piece and copy

  const trace::Piece& piece(std::int32_t i) const {
    return trace_.pieces[static_cast<std::size_t>(i)];
  }
  Key key(std::int32_t i, const trace::Call& call) const {
    const std::uint32_t copy = piece(i).common ? 0 : call.copy;
    return std::uint64_t{static_cast<std::uint32_t>(i)} << 32 | copy;
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
    used_ -= piece(static_cast<std::int32_t>(order_.front() >> 32)).tokens;
    entries_.erase(order_.front());
    order_.pop_front();
  }

  const trace::Trace& trace_;
  std::int64_t room_;
  std::int64_t used_ = 0;
  std::list<Key> order_;
  std::unordered_map<Key, std::list<Key>::iterator> entries_;  // looked up, never walked
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

// When each call comes if every answer takes `service` seconds, and `at_once` sessions run at any
// time where their starts are not known; and how long a session lasts then.
struct Times {
  std::vector<double> at;
  double session_seconds = 0;
};

Times times_of(const trace::Trace& trace, double service, double at_once) {
  Times times;
  times.at.resize(trace.calls.size());
  if (trace.sessions.empty()) {
    for (std::size_t i = 0; i < trace.calls.size(); ++i) {
      times.at[i] = to_seconds(trace.calls[i].at);
    }
    return times;
  }
  std::priority_queue<double, std::vector<double>, std::greater<>> slots;
  for (int i = 0; i < std::max(1, static_cast<int>(at_once + 0.5)); ++i) slots.push(0);
  for (const trace::Session& session : trace.sessions) {
    const bool known = session.start >= Duration::zero();
    const double start = known ? to_seconds(session.start) : slots.top();
    double last = start;
    for (std::int32_t i = session.first; i < session.first + session.calls; ++i) {
      const auto index = static_cast<std::size_t>(i);
      const trace::Call& call = trace.calls[index];
      times.at[index] = call.after < 0 ? start + to_seconds(call.at)
                                       : times.at[static_cast<std::size_t>(call.after)] + service +
                                             to_seconds(call.think);
      last = std::max(last, times.at[index] + service);
    }
    times.session_seconds += (last - start) / static_cast<double>(trace.sessions.size());
    if (known) continue;
    slots.pop();
    slots.push(last);
  }
  return times;
}

Capacity capacity_at(const std::vector<EngineGroup>& groups, const trace::Trace& trace,
                     const std::vector<double>& at) {
  std::int64_t kv = 0;
  for (const EngineGroup& group : groups) {
    kv += group.count * group.spec.ranks * group.spec.kv_tokens;
  }
  PieceCache cache(trace, kv / 2);
  std::vector<std::size_t> order(trace.calls.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
    return at[a] != at[b] ? at[a] < at[b] : a < b;
  });
  Mean mean;
  double prompts = 0, cached = 0, outputs = 0, held = 0;
  const std::size_t every = order.size() / kSamples + 1;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const trace::Call& call = trace.calls[order[i]];
    const auto prompt = static_cast<double>(call.prompt_tokens);
    const auto output = static_cast<double>(call.output_tokens);
    const auto found = static_cast<double>(cache.use(call));
    prompts += prompt;
    cached += found;
    outputs += output;
    held += output * (prompt + output / 2);
    if (i % every == 0) mean.prompts.emplace_back(prompt - found, found);
  }
  mean.output = outputs / static_cast<double>(order.size());
  mean.resident = held / outputs;
  Capacity result;
  result.cached_share = cached / prompts;
  for (const EngineGroup& group : groups) {
    const Seconds each = seconds_each(group.spec, mean);
    const double rate = group.count * group.spec.ranks / each.of_engine;
    result.requests_per_second += rate;
    result.service_seconds += rate * each.service;
  }
  result.service_seconds /= result.requests_per_second;
  return result;
}

}  // namespace

// More sessions at once leave less cache to each, which lowers the rate that brings them: a few
// steps of half the way each find where both agree.
Capacity capacity(const std::vector<EngineGroup>& groups, const trace::Trace& trace) {
  CHECK(!trace.calls.empty() && !groups.empty());
  Times times = times_of(trace, 1, 1);
  Capacity result = capacity_at(groups, trace, times.at);
  if (trace.sessions.empty()) return result;
  const double calls = static_cast<double>(trace.calls.size()) /
                       static_cast<double>(trace.sessions.size());
  double at_once = 1;
  for (int step = 0; step < kSteps; ++step) {
    times = times_of(trace, result.service_seconds, at_once);
    result = capacity_at(groups, trace, times.at);
    const double wanted = result.requests_per_second / calls * times.session_seconds;
    at_once = std::sqrt(at_once * std::max(1.0, wanted));
  }
  result.sessions_at_once = at_once;
  return result;
}

}  // namespace signalbox::sim
