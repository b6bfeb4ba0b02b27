// SPDX-License-Identifier: Apache-2.0
// Follows a whole conversation between the core and its drivers through the grammar: every event
// handed in, every action handed out. For the simulator, the replay of event logs, and tests; the
// core keeps the machines in its own records. Memory: one small record per request in flight.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <variant>

#include "core/model/action.h"
#include "core/model/event.h"
#include "core/model/grammar.h"
#include "core/model/ids.h"

namespace signalbox::model {

class GrammarChecker {
 public:
  void declare(EndpointId endpoint);
  void remove(EndpointId endpoint);

  // In the order in which the core's lock was taken: each event, then the actions it led to. The
  // verdict of a Progress digest is that of its worst entry.
  Verdict see(const Event& event);
  Verdict see(const Action& action);

  std::size_t requests_open() const { return requests_.size(); }
  std::uint64_t count(Verdict verdict) const { return counts_[static_cast<std::size_t>(verdict)]; }

 private:
  struct Open {
    RequestGrammar request;
    AttemptGrammar attempt;  // the newest; older ones are over
    AttemptId newest;
  };

  Verdict read(const RequestArrived& e);
  Verdict read(const ClientGone& e);
  Verdict read(const FirstToken& e);
  Verdict read(const AttemptEnded& e);
  Verdict read(const Progress& e);
  Verdict read(const EndpointObserved& e);
  Verdict read(const EndpointUnreachable& e);
  Verdict read(const DrainOver& e);
  Verdict read(const Tick& e);
  Verdict read(const Dispatch& a);
  Verdict read(const Abort& a);
  Verdict read(const Conclude& a);

  Verdict of_attempt(RequestId request, AttemptId attempt, AttemptGrammar::Signal signal);
  Verdict of_endpoint(EndpointId endpoint, EndpointGrammar::Signal signal);
  Verdict counted(Verdict verdict);

  std::unordered_map<RequestId, Open> requests_;            // looked up, never walked
  std::unordered_map<EndpointId, EndpointGrammar> endpoints_;
  EndpointId newest_endpoint_;
  bool draining_ = false;
  std::array<std::uint64_t, 4> counts_{};
};

}  // namespace signalbox::model
