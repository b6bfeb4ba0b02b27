// SPDX-License-Identifier: Apache-2.0
// Passes begin and end; stretches of equal ones are planned and followed.
#include "sim/engine/engine.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"

namespace signalbox::truth {
namespace {

// Planned at once. More would be planned for nothing when somebody arrives.
constexpr std::int64_t kStretchMost = 64;

constexpr std::int64_t kWaitingWeight = 4;

}  // namespace

Engine::Engine(const EngineSpec& spec, Rng rng)
    : block_tokens_(spec.block_tokens), clock_(spec, rng), mark_(clock_.mark()) {
  CHECK(spec.ranks > 0);
  // A copy: the noise draws from where the clock has left off.
  const std::uint64_t drafts = rng.next();
  for (int i = 0; i < spec.ranks; ++i) {
    ranks_.emplace_back(spec, Rng(drafts, "drafts" + std::to_string(i)));
  }
  cache_events_.resize(ranks_.size());
  pass_.resize(ranks_.size());
  load_.resize(ranks_.size());
}

Engine::Place Engine::submit(SequenceSpec sequence, Instant now, int rank) {
  CHECK(next_event() >= now && rank < ranks());
  follow_stretch(now);
  cut_stretch();
  if (!in_pass_ && empty()) ready_at_ = now;
  unblock(now);
  if (rank < 0) rank = least_loaded();
  return {rank, ranks_[static_cast<std::size_t>(rank)].submit(std::move(sequence), now)};
}

// vLLM's balance: the least 4 · waiting + running, the first of equals (vllm-project/vllm
// vllm/v1/engine/core_client.py, get_core_engine_for_request). Here the counts are never old.
int Engine::least_loaded() const {
  const auto score = [](const Rank& rank) {
    const Gauges gauges = rank.gauges();
    return kWaitingWeight * gauges.waiting + gauges.running;
  };
  const auto less = [&](const Rank& a, const Rank& b) { return score(a) < score(b); };
  return static_cast<int>(std::min_element(ranks_.begin(), ranks_.end(), less) - ranks_.begin());
}

bool Engine::empty() const {
  return std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& r) { return r.empty(); });
}

bool Engine::abort(SequenceId id, Instant now) {
  follow_stretch(now);
  cut_stretch();
  for (Rank& rank : ranks_) {
    const Rank::Abort how = rank.abort(id);
    if (how == Rank::Abort::Unknown) continue;
    unblock(now);
    if (how == Rank::Abort::Runs && !in_pass_) {
      rank.drop_ended();
      ready_at_ = std::max(ready_at_, now);
    }
    return true;
  }
  return false;
}

void Engine::release(SequenceId id, Instant now) {
  follow_stretch(now);
  cut_stretch();
  for (Rank& rank : ranks_) {
    if (rank.release(id)) return unblock(now);
  }
}

void Engine::unblock(Instant now) {
  if (!std::exchange(blocked_, false)) return;
  ready_at_ = std::max(ready_at_, now);
}

Instant Engine::next_event() const {
  if (!ends_.empty()) return ends_.back();
  if (in_pass_) return pass_end_;
  return empty() || blocked_ ? kNever : ready_at_;
}

void Engine::advance(Instant now, std::vector<Output>& out) {
  while (next_event() <= now) {
    if (!ends_.empty()) end_stretch();
    if (in_pass_) finish_pass(out);
    else start_pass(ready_at_, out);
  }
  follow_stretch(now);
}

void Engine::start_pass(Instant at, std::vector<Output>& out) {
  const Instant start = std::max(at, stalled_until_);
  bool any = false;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    load_[i] = ranks_[i].start(start, pass_[i], out);
    any |= !pass_[i].empty();
  }
  blocked_ = !any;
  if (blocked_) return;
  in_pass_ = true;
  pass_start_ = start;
  if (tells_less_) mark_ = clock_.mark();
  pass_end_ = start + clock_.step(load_);
  if (tells_less_) begin_stretch();
}

void Engine::finish_pass(std::vector<Output>& out) {
  in_pass_ = false;
  ready_at_ = pass_end_;
  took(pass_end_);
  for (std::size_t i = 0; i < ranks_.size(); ++i) ranks_[i].finish(pass_end_, pass_[i], out);
}

// The pass in flight has lasted until then.
void Engine::took(Instant until) {
  const double seconds = to_seconds(until - pass_start_);
  ++steps_;
  busy_seconds_ += seconds;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    if (!pass_[i].empty()) ranks_[i].took(seconds, load_[i].tokens());
  }
}

// The pass that has just started and those like it behind it.
void Engine::begin_stretch() {
  std::int64_t passes = kStretchMost;
  for (std::size_t i = 0; i < ranks_.size() && passes > 1; ++i) {
    passes = std::min(passes, ranks_[i].stretch(pass_[i], load_[i], passes));
  }
  if (passes < 2) return;
  passed_ = 0;
  ends_.push_back(pass_end_);
  ahead_ = load_;
  for (std::int64_t i = 1; i < passes; ++i) {
    for (StepLoad& load : ahead_) load.decode_tokens += load.decoding;
    ends_.push_back(ends_.back() + clock_.step(ahead_));
  }
}

// All that has ended before or at `now`, but for the last, whose end is told.
void Engine::follow_stretch(Instant now) {
  if (ends_.empty()) return;
  const std::size_t before = passed_;
  for (; passed_ + 1 < ends_.size() && ends_[passed_] <= now; ++passed_) {
    took(ends_[passed_]);
    pass_start_ = ends_[passed_];
  }
  if (passed_ == before) return;
  pass_end_ = ends_[passed_];
  const auto passes = static_cast<std::int64_t>(passed_ - before);
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    load_[i].decode_tokens += passes * load_[i].decoding;
    ranks_[i].pass(pass_start_, passes);
  }
}

// The pass in flight is an ordinary one, and those behind it were never planned.
void Engine::cut_stretch() {
  if (ends_.empty()) return;
  clock_.rewind(mark_, passed_ + 1);
  ends_.clear();
}

void Engine::end_stretch() {
  follow_stretch(ends_.back());
  ends_.clear();
}

void Engine::tell_less() {
  tells_less_ = true;
  for (Rank& rank : ranks_) rank.tell_all(false);
}

void Engine::slow(double factor) {
  cut_stretch();
  clock_.slow(factor);
}

void Engine::stall_until(Instant until) {
  cut_stretch();
  stalled_until_ = until;
  if (in_pass_) pass_end_ = std::max(pass_end_, until);
}

void Engine::drop_cache() {
  for (Rank& rank : ranks_) rank.drop_cache();
}

void Engine::restart(std::vector<SequenceId>& lost) {
  clear(lost);
  steps_ = 0;
  busy_seconds_ = 0;
  for (Rank& rank : ranks_) rank.reset_counters();
  ++incarnation_;
}

void Engine::clear(std::vector<SequenceId>& lost) {
  cut_stretch();
  in_pass_ = false;
  blocked_ = false;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    pass_[i].clear();
    ranks_[i].clear(lost);
    if (!publishes_cache_) continue;
    ranks_[i].log_to(&cache_events_[i]);
    cache_events_[i].assign(1, {CacheEvent::Kind::Cleared, 0});
  }
}

std::span<const Rank> Engine::some(int rank) const {
  if (rank < 0) return ranks_;
  return std::span(ranks_).subspan(static_cast<std::size_t>(rank), 1);
}

Gauges Engine::gauges(int rank) const {
  Gauges sum;
  for (const Rank& r : some(rank)) sum.add(r.gauges());
  return sum;
}

Counters Engine::counters(int rank) const {
  if (rank >= 0) return ranks_[static_cast<std::size_t>(rank)].counters();
  Counters sum;
  for (const Rank& r : ranks_) sum.add(r.counters());
  sum.steps = steps_;
  sum.busy_seconds = busy_seconds_;
  return sum;
}

std::size_t Engine::cached_blocks() const {
  std::size_t blocks = 0;
  for (const Rank& rank : ranks_) blocks += rank.cached_blocks();
  return blocks;
}

std::int64_t Engine::waiting_tokens(int rank) const {
  std::int64_t tokens = 0;
  for (const Rank& r : some(rank)) tokens += r.waiting_tokens();
  return tokens;
}

void Engine::publish_cache() {
  publishes_cache_ = true;
  for (std::size_t i = 0; i < ranks_.size(); ++i) ranks_[i].log_to(&cache_events_[i]);
}

std::vector<CacheEvent> Engine::take_cache_events(int rank) {
  return std::exchange(cache_events_[static_cast<std::size_t>(rank)], {});
}

}  // namespace signalbox::truth
