// SPDX-License-Identifier: Apache-2.0
// Which events and actions may follow which: one machine each for a request, an attempt and an
// endpoint, a byte of state each. The server and the simulator check with the same machines.
//
//   Legal      the next step; the machine moves
//   Duplicate  told before, by another path; ignore
//   Stale      true once, but overtaken: ignore. Late events of what is over are always stale
//   Illegal    no correct sender says this; count it, ignore it, and let tests fail
//
// Who forgot a request or an endpoint treats it as over: an event about it is Stale (an arrival is
// Legal: ids are never used twice). A carrier that no longer knows the request or the attempt of an
// action drops the action as Stale. A second DrainOver is Duplicate; a Tick is always Legal.
#pragma once

#include <cstdint>
#include <string_view>

namespace signalbox::model {

enum class Verdict : std::uint8_t { Legal, Duplicate, Stale, Illegal };

std::string_view name(Verdict verdict);

//                 Unseen   Waiting   Running       GoneRunning   Gone        Concluded
//   Arrived       Waiting  illegal   illegal       illegal       illegal     illegal
//   ClientGone    illegal  Gone      GoneRunning   duplicate     duplicate   stale
//   Dispatched    illegal  Running   illegal (1)   illegal       illegal     illegal
//   Aborted       illegal  illegal   Waiting       Gone          illegal     illegal
//   AttemptOver   illegal  Waiting   Waiting       Gone          Gone        stale      (2)
//   Concluded     illegal  Concluded illegal (3)   illegal (3)   Concluded   illegal (4)
//
// (1) One engine at a time generates for a request. (2) Only where the attempt's machine said
// Legal; where no attempt runs, it is the late end of one that was aborted. (3) A running attempt
// is ended or aborted first, else its engine would go on for nobody. (4) One outcome each.
class RequestGrammar {
 public:
  enum class State : std::uint8_t { Unseen, Waiting, Running, GoneRunning, Gone, Concluded };
  enum class Signal : std::uint8_t {
    Arrived, ClientGone, Dispatched, Aborted, AttemptOver, Concluded
  };

  Verdict take(Signal signal);
  State state() const { return state_; }

 private:
  State state_ = State::Unseen;
};

//                 Unseen   Sent        Streaming   Aborting    Ended
//   Dispatched    Sent     illegal     illegal     illegal     illegal
//   FirstToken    illegal  Streaming   duplicate   stale       stale
//   Progress      illegal  Sent        Streaming   stale       stale
//   Aborted       illegal  Aborting    Aborting    duplicate   illegal
//   Ended         illegal  Ended       Ended       Ended       duplicate
//
// Progress may overtake the first token: it is a digest of its thread. The end of an aborted
// attempt may stay away.
class AttemptGrammar {
 public:
  enum class State : std::uint8_t { Unseen, Sent, Streaming, Aborting, Ended };
  enum class Signal : std::uint8_t { Dispatched, FirstToken, Progress, Aborted, Ended };

  Verdict take(Signal signal);
  State state() const { return state_; }

 private:
  State state_ = State::Unseen;
};

//                 Absent     Declared      Up            Down          Removed
//   Declared      Declared   duplicate     duplicate     duplicate     illegal
//   Observed      illegal    Up            Up            Up            stale
//   Unreachable   illegal    Down          Down          Down          stale
//   Dispatched    illegal    Declared      Up            Down          illegal
//   Removed       illegal    Removed       Removed       Removed       duplicate
//
// An endpoint that is down may be dispatched to: a failed look proves little, and when all are down
// the least bad one serves. A look that was under way when the endpoint left is stale.
class EndpointGrammar {
 public:
  enum class State : std::uint8_t { Absent, Declared, Up, Down, Removed };
  enum class Signal : std::uint8_t { Declared, Observed, Unreachable, Dispatched, Removed };

  Verdict take(Signal signal);
  State state() const { return state_; }

 private:
  State state_ = State::Absent;
};

}  // namespace signalbox::model
