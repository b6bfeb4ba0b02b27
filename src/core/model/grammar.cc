// SPDX-License-Identifier: Apache-2.0
// The tables of grammar.h. Rows are signals, columns states.
#include "core/model/grammar.h"

#include <array>

#include "base/check.h"

namespace signalbox::model {
namespace {

// A cell: the next state, or a verdict that leaves the state alone.
template <typename State>
struct Cell {
  constexpr Cell(State to) : next(to), verdict(Verdict::Legal) {}  // NOLINT: reads as the table
  constexpr Cell(Verdict v) : next(State{}), verdict(v) {}         // NOLINT
  State next;
  Verdict verdict;
};

template <typename State, std::size_t Signals, std::size_t States>
using Table = std::array<std::array<Cell<State>, States>, Signals>;

template <typename State, typename Signal, std::size_t Signals, std::size_t States>
Verdict step(const Table<State, Signals, States>& table, State& state, Signal signal) {
  const Cell<State>& cell =
      table[static_cast<std::size_t>(signal)][static_cast<std::size_t>(state)];
  if (cell.verdict == Verdict::Legal) state = cell.next;
  return cell.verdict;
}

constexpr Verdict kDup = Verdict::Duplicate;
constexpr Verdict kStale = Verdict::Stale;
constexpr Verdict kBad = Verdict::Illegal;

using R = RequestGrammar::State;
constexpr Table<R, 6, 6> kRequest = {{
    {{R::Waiting, kBad, kBad, kBad, kBad, kBad}},
    {{kBad, R::Gone, R::GoneRunning, kDup, kDup, kStale}},
    {{kBad, R::Running, kBad, kBad, kBad, kBad}},
    {{kBad, kBad, R::Waiting, R::Gone, kBad, kBad}},
    {{kBad, R::Waiting, R::Waiting, R::Gone, R::Gone, kStale}},
    {{kBad, R::Concluded, kBad, kBad, R::Concluded, kBad}},
}};

using A = AttemptGrammar::State;
constexpr Table<A, 5, 5> kAttempt = {{
    {{A::Sent, kBad, kBad, kBad, kBad}},
    {{kBad, A::Streaming, kDup, kStale, kStale}},
    {{kBad, A::Sent, A::Streaming, kStale, kStale}},
    {{kBad, A::Aborting, A::Aborting, kDup, kBad}},
    {{kBad, A::Ended, A::Ended, A::Ended, kDup}},
}};

using E = EndpointGrammar::State;
constexpr Table<E, 5, 5> kEndpoint = {{
    {{E::Declared, kDup, kDup, kDup, kBad}},
    {{kBad, E::Up, E::Up, E::Up, kStale}},
    {{kBad, E::Down, E::Down, E::Down, kStale}},
    {{kBad, E::Declared, E::Up, E::Down, kBad}},
    {{kBad, E::Removed, E::Removed, E::Removed, kDup}},
}};

}  // namespace

std::string_view name(Verdict verdict) {
  switch (verdict) {
    case Verdict::Legal: return "legal";
    case Verdict::Duplicate: return "duplicate";
    case Verdict::Stale: return "stale";
    case Verdict::Illegal: return "illegal";
  }
  CHECK(false);
}

Verdict RequestGrammar::take(Signal signal) { return step(kRequest, state_, signal); }
Verdict AttemptGrammar::take(Signal signal) { return step(kAttempt, state_, signal); }
Verdict EndpointGrammar::take(Signal signal) { return step(kEndpoint, state_, signal); }

}  // namespace signalbox::model
