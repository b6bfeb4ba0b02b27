// SPDX-License-Identifier: Apache-2.0
// Leads each event and action to the machines that it concerns.
#include "core/model/grammar_checker.h"

#include <algorithm>
#include <utility>

namespace signalbox::model {

void GrammarChecker::declare(EndpointId endpoint) {
  newest_endpoint_ = std::max(newest_endpoint_, endpoint);
  counted(endpoints_[endpoint].take(EndpointGrammar::Signal::Declared));
}

void GrammarChecker::remove(EndpointId endpoint) {
  counted(of_endpoint(endpoint, EndpointGrammar::Signal::Removed));
  endpoints_.erase(endpoint);
}

Verdict GrammarChecker::see(const Event& event) {
  return counted(std::visit([&](const auto& e) { return read(e); }, event));
}
Verdict GrammarChecker::see(const Action& action) {
  return counted(std::visit([&](const auto& a) { return read(a); }, action));
}

Verdict GrammarChecker::counted(Verdict verdict) {
  ++counts_[static_cast<std::size_t>(verdict)];
  return verdict;
}

Verdict GrammarChecker::of_attempt(RequestId request, AttemptId attempt,
                                   AttemptGrammar::Signal signal) {
  const auto at = requests_.find(request);
  if (at == requests_.end()) return Verdict::Stale;
  Open& open = at->second;
  if (!attempt || attempt > open.newest) return Verdict::Illegal;
  if (attempt < open.newest) {
    return signal == AttemptGrammar::Signal::Ended ? Verdict::Duplicate : Verdict::Stale;
  }
  return open.attempt.take(signal);
}

// Endpoints that left are forgotten; ids come in order and are never used twice.
Verdict GrammarChecker::of_endpoint(EndpointId endpoint, EndpointGrammar::Signal signal) {
  using Signal = EndpointGrammar::Signal;
  const auto at = endpoints_.find(endpoint);
  if (at != endpoints_.end()) return at->second.take(signal);
  if (!endpoint || endpoint > newest_endpoint_) return Verdict::Illegal;
  if (signal == Signal::Dispatched) return Verdict::Illegal;
  return signal == Signal::Removed ? Verdict::Duplicate : Verdict::Stale;
}

Verdict GrammarChecker::read(const RequestArrived& e) {
  return requests_[e.request].request.take(RequestGrammar::Signal::Arrived);
}

Verdict GrammarChecker::read(const ClientGone& e) {
  const auto at = requests_.find(e.request);
  if (at == requests_.end()) return Verdict::Stale;
  return at->second.request.take(RequestGrammar::Signal::ClientGone);
}

Verdict GrammarChecker::read(const FirstToken& e) {
  return of_attempt(e.request, e.attempt, AttemptGrammar::Signal::FirstToken);
}

Verdict GrammarChecker::read(const AttemptEnded& e) {
  const Verdict verdict = of_attempt(e.request, e.attempt, AttemptGrammar::Signal::Ended);
  if (verdict != Verdict::Legal) return verdict;
  RequestGrammar& request = requests_[e.request].request;
  if (e.client_left) {
    const Verdict gone = request.take(RequestGrammar::Signal::ClientGone);
    if (gone == Verdict::Illegal) return gone;
  }
  return request.take(RequestGrammar::Signal::AttemptOver);
}

Verdict GrammarChecker::read(const Progress& e) {
  Verdict worst = Verdict::Legal;
  for (const Progress::Entry& entry : e.entries) {
    worst = std::max(worst,
                     of_attempt(entry.request, entry.attempt, AttemptGrammar::Signal::Progress));
  }
  return worst;
}

Verdict GrammarChecker::read(const EndpointObserved& e) {
  return of_endpoint(e.endpoint, EndpointGrammar::Signal::Observed);
}
Verdict GrammarChecker::read(const EndpointUnreachable& e) {
  return of_endpoint(e.endpoint, EndpointGrammar::Signal::Unreachable);
}

Verdict GrammarChecker::read(const DrainOver&) {
  return std::exchange(draining_, true) ? Verdict::Duplicate : Verdict::Legal;
}

Verdict GrammarChecker::read(const Tick&) { return Verdict::Legal; }

// The core knows what it has forgotten, so its actions about unknown requests are illegal.
Verdict GrammarChecker::read(const Dispatch& a) {
  const auto at = requests_.find(a.request);
  if (at == requests_.end()) return Verdict::Illegal;
  Open& open = at->second;
  if (a.attempt.value() != open.newest.value() + 1) return Verdict::Illegal;
  const Verdict endpoint = of_endpoint(a.endpoint, EndpointGrammar::Signal::Dispatched);
  const Verdict request = open.request.take(RequestGrammar::Signal::Dispatched);
  if (request != Verdict::Legal) return request;
  open.newest = a.attempt;
  open.attempt = AttemptGrammar{};
  return std::max(endpoint, open.attempt.take(AttemptGrammar::Signal::Dispatched));
}

Verdict GrammarChecker::read(const Abort& a) {
  const auto at = requests_.find(a.request);
  if (at == requests_.end() || at->second.newest != a.attempt) return Verdict::Illegal;
  const Verdict attempt = at->second.attempt.take(AttemptGrammar::Signal::Aborted);
  if (attempt != Verdict::Legal) return attempt;
  return at->second.request.take(RequestGrammar::Signal::Aborted);
}

Verdict GrammarChecker::read(const Conclude& a) {
  const auto at = requests_.find(a.request);
  if (at == requests_.end() || a.attempt > at->second.newest) return Verdict::Illegal;
  const Verdict verdict = at->second.request.take(RequestGrammar::Signal::Concluded);
  if (verdict == Verdict::Legal) requests_.erase(at);
  return verdict;
}

}  // namespace signalbox::model
