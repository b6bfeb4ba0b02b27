// SPDX-License-Identifier: Apache-2.0
// Depart late: a request that has its place stays here until the engine there is about to run dry.
// It weighs on that place as if it had been sent, so that all others are placed as they would be;
// but until it departs it can be moved, and those whose own work is short go first.
#include <algorithm>

#include "core/dispatch/late.h"
#include "core/flow/core.h"

namespace signalbox::flow {
namespace {

// Decisions that one event may take for an endpoint that wants more.
constexpr int kFeedSlice = 16;
// Of those who wait for others, how many are asked whether they would rather come.
constexpr int kTakeOverSlice = 4;

}  // namespace

routing::Work Core::work(const Request& request, const routing::Decision& decision) const {
  const std::int64_t cached = match_.cached_tokens(decision.endpoint);
  return {std::max<std::int64_t>(1, match_.prompt_tokens - cached), cached, decision.ask.output,
          !request.arrived.stream};
}

model::DispatchMode Core::mode(model::EndpointId id) {
  // Asked at every placement, first token and end.
  if (!any_waits_to_depart_) return model::DispatchMode::Immediate;
  const PoolState* pool = pool_of(id);
  return pool == nullptr ? model::DispatchMode::Immediate : pool->acting;
}

// Keeps it here: late, while the chosen place has enough to compute, or somebody else's turn there
// is first; by shuttle, until a pass takes it. False: it departs, as it does where no more may
// wait: it has a place, after all. A retry has waited enough for a shuttle.
bool Core::hold(Request& request, const routing::Decision& decision, Instant now) {
  const model::DispatchMode how = mode(decision.endpoint);
  if (how == model::DispatchMode::Immediate) return false;
  if (decision.ejected) return false;  // the last resort is tried at once
  if (!request.waiting && !queue_.takes(request.arrived.body_bytes)) return false;
  if (how == model::DispatchMode::Shuttle && request.attempts > 0) return false;
  const routing::Terms terms =
      routing::score(decision.ask, decision.candidates[decision.chosen]);
  const Instant turn = dispatch::turn(config_.dispatch, request.at,
                                      static_cast<double>(terms.prefill));
  if (how == model::DispatchMode::Late &&
      !dispatch::fed(config_.dispatch, load_.feed(decision.endpoint)) &&
      turn <= load_.held_front_turn(decision.endpoint)) {
    return false;
  }
  const model::AttemptId next(request.attempt.value() + 1);
  if (!load_.hold(decision.endpoint, {request.arrived.request, next}, work(request, decision),
                  turn, now)) {
    return false;
  }
  request.held_for = decision.endpoint;
  if (how == model::DispatchMode::Shuttle && !request.waiting) {
    pool_of(decision.endpoint)->arrivals.count(now);
  }
  if (!request.waiting) {
    DecisionRecord& record = remember(request, decision, now);
    record.held = how;
    request.decision = record.number;
  }
  return true;
}

// The place that it waits for is no longer promised to it.
void Core::let_go(Request& request, Instant now) {
  if (!request.held_for) return;
  load_.ended({request.arrived.request, model::AttemptId(request.attempt.value() + 1)}, now);
  request.held_for = {};
}

// An endpoint has shown a first token or has ended an attempt: those who wait for it depart in the
// order of their turns, as long as it wants more. Each is placed anew, so that who would now be
// better off elsewhere goes there. Once nobody waits for it, it may take over from others.
void Core::feed(model::EndpointId id, Instant now, Actions& out) {
  if (drain_over_) return;
  for (int looked = 0; looked < kFeedSlice; ++looked) {
    if (dispatch::fed(config_.dispatch, load_.feed(id))) return;
    Request* next = find(load_.held_front(id).request);
    if (next == nullptr) break;
    place_waiting(*next, now, out);
  }
  const model::ModelId model = pools_.at(endpoints_.at(id).declared.pool).declared.model;
  if (load_.held_front(id).request) {
    may_move_.insert(model);
    return;
  }
  model::RequestId next = queue_.front(model);
  for (int looked = 0; next && looked < kTakeOverSlice; ++looked) {
    Request& request = *find(next);
    next = queue_.next(next);
    if (place_waiting(request, now, out) == Placed::Waits) return;
  }
}

}  // namespace signalbox::flow
