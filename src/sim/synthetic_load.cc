// SPDX-License-Identifier: Apache-2.0
// Draws sessions and turns.
#include "sim/synthetic_load.h"

#include <algorithm>
#include <cmath>

namespace signalbox::sim {
namespace {

// Kinds of content, so that names differ.
enum Kind : std::uint64_t { kSystem = 3, kAnswer = 7, kMessage = 11, kCut = 13 };

std::uint64_t name(Kind kind, const Session& session, std::uint64_t part) {
  return mixed(mixed(kind, session.number), part);
}

Instant after_start(Duration at) { return at == trace::kEver ? kNever : Instant{} + at; }

}  // namespace

SyntheticLoad::SyntheticLoad(const Load& load, std::uint64_t seed,
                             const Surroundings& surroundings)
    : load_(load), seed_(seed), surroundings_(surroundings),
      arrivals_(load.arrivals, load.sessions_per_second, seed) {
  Rng rng(seed, "systems");
  double sum = 0;
  for (int i = 0; i < std::max(1, load.system_prompts); ++i) {
    systems_.push_back({mixed(mixed(kSystem, seed), systems_.size()), draw(load.system, rng)});
    sum += std::pow(i + 1, -load.zipf);
    popularity_.push_back(sum);
  }
  next_session_ = after_start(arrivals_.next());
}

// A session's draws depend on nothing but its number and turn.
Rng SyntheticLoad::rng(const Session& session, std::string_view what) const {
  return Rng(mixed(mixed(seed_, session.number), session.turns), what);
}

const Span& SyntheticLoad::popular(Rng& rng) const {
  const double at = rng.uniform() * popularity_.back();
  const auto found = std::lower_bound(popularity_.begin(), popularity_.end(), at);
  return systems_[static_cast<std::size_t>(found - popularity_.begin())];
}

Instant SyntheticLoad::next() const {
  return turns_.empty() ? next_session_ : std::min(next_session_, turns_.begin()->first.first);
}

Ask SyntheticLoad::take() {
  if (turns_.empty() || next_session_ < turns_.begin()->first.first) return first_turn();
  Ask ask = std::move(turns_.begin()->second);
  turns_.erase(turns_.begin());
  return ask;
}

Ask SyntheticLoad::first_turn() {
  next_session_ = after_start(arrivals_.next());
  Rng rng(mixed(seed_, ++sessions_), "session");
  Session session = new_session(load_, surroundings_, sessions_, rng);
  session.history.push_back(popular(rng));
  return turn(std::move(session));
}

void SyntheticLoad::ended(const Ask& ask, Ending how, Instant now) {
  if (how != Ending::Answered) return;
  Rng draws = rng(ask.session, "follow-up");
  if (!draws.chance(load_.follow_up)) return;
  const double think = draws.exponential(std::max(1e-3, to_seconds(load_.think)));
  Session session = ask.session;
  session.history.push_back({ask.answer, ask.answer_tokens});
  const Instant at = now + from_seconds(think);
  turns_.emplace(std::pair(at, ++turns_parked_), turn(std::move(session)));
}

Ask SyntheticLoad::turn(Session session) const {
  ++session.turns;
  Rng draws = rng(session, "turn");
  session.history.push_back({name(kMessage, session, session.turns), draw(load_.turn, draws)});
  Ask ask;
  ask.answer = name(kAnswer, session, session.turns);
  ask.answer_tokens = draw(load_.answer, draws);
  if (draws.chance(load_.capped)) {
    ask.output_max = std::max<std::int64_t>(1, draw(load_.answer, draws));
    ask.answer_tokens = std::min(ask.answer_tokens, ask.output_max);
  }
  add_habits(load_, draws, ask);
  fit(session, surroundings_.context - ask.answer_tokens);
  ask.session = std::move(session);
  return ask;
}

// What outgrows the context begins anew with its latest message.
void SyntheticLoad::fit(Session& session, std::int64_t room) const {
  if (tokens_of(session.history) <= room) return;
  session.history = {session.history.front(), session.history.back()};
  for (std::size_t i = 0; i < session.history.size(); ++i) {
    Span& span = session.history[i];
    if (span.tokens <= room / 2) continue;
    span = {name(kCut, session, session.turns * 2 + i), std::max<std::int64_t>(1, room / 2)};
  }
}

}  // namespace signalbox::sim
