// SPDX-License-Identifier: Apache-2.0
// Turns recorded calls into what clients ask.
#include "sim/trace_load.h"

#include <algorithm>

#include "sim/trace/operations.h"

namespace signalbox::sim {
namespace {

// Whoever got no answer does not begin anew at once: a gateway that refuses everybody would be
// asked for ever at one moment.
constexpr Duration kPause = std::chrono::seconds(1);
constexpr std::int64_t kCap = 4096;  // max_tokens of those who set it, unless they got more

std::size_t place(std::int32_t index) { return static_cast<std::size_t>(index); }

bool fits(const trace::Call& call, const Surroundings& surroundings) {
  return call.prompt_tokens + call.output_tokens <= surroundings.context;
}

// Leaves out what goes beyond the room, at the end.
void cut(std::vector<Span>& spans, std::int64_t room) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    sum += spans[i].tokens;
    if (sum <= room) continue;
    spans[i].tokens -= sum - room;
    spans.resize(spans[i].tokens > 0 ? i + 1 : i);
    return;
  }
}

Ask ask_of(const Load& load, const Surroundings& surroundings, Session session,
           const trace::Call& call, std::uint64_t copy, Rng& rng) {
  Ask ask;
  ask.answer = trace::answer_of(call, copy);
  ask.answer_tokens = std::clamp<std::int64_t>(call.output_tokens, 1,
                                               std::max<std::int64_t>(1, surroundings.context / 2));
  if (rng.chance(load.capped)) ask.output_max = std::max(kCap, ask.answer_tokens);
  add_habits(load, rng, ask);
  session.history = trace::prompt_of(*load.trace, call, copy);
  cut(session.history, std::max<std::int64_t>(1, surroundings.context - ask.answer_tokens));
  ++session.turns;
  ask.session = std::move(session);
  return ask;
}

}  // namespace

OpenLoopLoad::OpenLoopLoad(const Load& load, std::uint64_t seed, const Surroundings& surroundings)
    : load_(load), seed_(seed), surroundings_(surroundings) {
  pass_over();
}

void OpenLoopLoad::pass_over() {
  if (load_.too_long == TooLong::Cut) return;
  const std::vector<trace::Call>& calls = load_.trace->calls;
  while (index_ < calls.size() && !fits(calls[index_], surroundings_)) ++index_;
}

Instant OpenLoopLoad::next() const {
  if (index_ >= load_.trace->calls.size()) return kNever;
  return Instant{} + load_.trace->calls[index_].at;
}

Ask OpenLoopLoad::take() {
  const trace::Call& call = load_.trace->calls[index_];
  Rng who(mixed(seed_, trace::origin_of(*load_.trace, call)), "session");
  Session session = new_session(load_, surroundings_, index_ + 1, who);
  Rng rng(mixed(seed_, index_), "call");
  ++index_;
  pass_over();
  return ask_of(load_, surroundings_, std::move(session), call, 0, rng);
}

ClosedLoopLoad::ClosedLoopLoad(const Load& load, std::uint64_t seed,
                               const Surroundings& surroundings)
    : load_(load), seed_(seed), surroundings_(surroundings),
      arrivals_(load.arrivals, load.sessions_per_second, seed), order_rng_(seed, "sessions"),
      first_waiting_(trace().calls.size(), -1), next_waiting_(trace().calls.size(), -1) {
  for (std::size_t i = trace().calls.size(); i-- > 0;) {
    const std::int32_t after = trace().calls[i].after;
    if (after < 0) continue;
    next_waiting_[i] = first_waiting_[place(after)];
    first_waiting_[place(after)] = static_cast<std::int32_t>(i);
  }
  recorded_ = trace::has_starts(trace());
  if (recorded_) {
    for (const trace::Session& session : trace().sessions) {
      begin(session, From::Start, Instant{} + session.start);
    }
  } else if (load.sessions_at_once == 0) {
    draw_start();
  } else {
    for (int i = 0; i < load.sessions_at_once; ++i) {
      begin_another(From::Middle, Instant{} + load.ramp * i / load.sessions_at_once);
    }
  }
}

// The next session by arrivals is always parked, so that next() knows its time.
void ClosedLoopLoad::draw_start() {
  const Duration at = arrivals_.next();
  const bool comes = at != trace::kEver && begin_another(From::Start, Instant{} + at);
  next_start_ = comes ? Instant{} + at : kNever;
}

// The next session of this pass; each pass has an order of its own.
const trace::Session& ClosedLoopLoad::choose() {
  if (chosen_ == order_.size()) {
    order_.resize(trace().sessions.size());
    for (std::size_t i = 0; i < order_.size(); ++i) {
      order_[i] = static_cast<std::int32_t>(i);
      std::swap(order_[i], order_[order_rng_.below(i + 1)]);
    }
    chosen_ = 0;
    ++pass_;
  }
  return trace().sessions[place(order_[chosen_++])];
}

// False when nothing of it can be played.
bool ClosedLoopLoad::begin(const trace::Session& session, From from, Instant at) {
  Rng rng(mixed(seed_, ++begun_), "session");
  Run& run = runs_[begun_];
  run.session = new_session(load_, surroundings_, begun_, rng);
  run.copy = pass_ > 0 ? pass_ - 1 : 0;
  const auto calls = static_cast<std::uint64_t>(session.calls);
  const std::uint64_t skipped = from == From::Middle ? rng.below(calls) : 0;
  const std::int32_t first = session.first + static_cast<std::int32_t>(skipped);
  for (std::int32_t i = first; i < session.first + session.calls; ++i) {
    const trace::Call& call = trace().calls[place(i)];
    if (call.after >= first) continue;
    const Duration delay = from == From::Start
                               ? call.at - trace().calls[place(first)].at
                               : from_seconds(to_seconds(call.think) * rng.uniform());
    await(begun_, i, at + std::max(Duration::zero(), delay));
  }
  if (run.open > 0) return true;
  runs_.erase(begun_);
  return false;
}

// False when none can be played.
bool ClosedLoopLoad::begin_another(From from, Instant at) {
  for (std::size_t i = 0; i < trace().sessions.size(); ++i) {
    if (begin(choose(), from, at)) return true;
  }
  return false;
}

void ClosedLoopLoad::await(std::uint64_t run, std::int32_t call, Instant at) {
  const bool too_long = !fits(trace().calls[place(call)], surroundings_);
  if (too_long && load_.too_long == TooLong::Skip) return;
  ++runs_.at(run).open;
  coming_.emplace(std::pair(at, ++parked_), Coming{run, call});
}

Instant ClosedLoopLoad::next() const {
  return coming_.empty() ? kNever : coming_.begin()->first.first;
}

Ask ClosedLoopLoad::take() {
  while (coming_.begin()->first.first >= next_start_) draw_start();
  const Coming coming = coming_.begin()->second;
  coming_.erase(coming_.begin());
  const Run& run = runs_.at(coming.run);
  const trace::Call& call = trace().calls[place(coming.call)];
  Rng rng(mixed(mixed(seed_, coming.run), static_cast<std::uint64_t>(coming.call)), "call");
  Ask ask = ask_of(load_, surroundings_, run.session, call, run.copy, rng);
  ask.call = coming.call;
  return ask;
}

void ClosedLoopLoad::ended(const Ask& ask, Ending how, Instant now) {
  const std::uint64_t run = ask.session.number;
  if (how == Ending::Answered) {
    for (std::int32_t i = first_waiting_[place(ask.call)]; i >= 0; i = next_waiting_[place(i)]) {
      await(run, i, now + trace().calls[place(i)].think);
    }
  }
  if (--runs_.at(run).open > 0) return;
  runs_.erase(run);
  if (recorded_ || load_.sessions_at_once == 0) return;
  begin_another(From::Start, how == Ending::Answered ? now : now + kPause);
}

}  // namespace signalbox::sim
