// SPDX-License-Identifier: Apache-2.0
// Recover: a failed attempt is tried elsewhere, or its request ends and says how.
#include <algorithm>

#include "core/flow/core.h"

namespace signalbox::flow {

void Core::failed(Request& request, const model::AttemptEnded& event, Instant now, Actions& out) {
  if (!request.has_first_token) index_.withdraw(request.endpoint, query(request));
  if (recovery::answered(event.result)) ++request.answers;
  request.tried.push_back(request.endpoint);
  const auto pool = pools_.find(request.pool);
  const recovery::Ending ending{event.result,
                                event.status,
                                event.delivered,
                                request.attempts - request.forgiven,
                                request.answers,
                                pool != pools_.end() && pool->second.budget.left(),
                                true};
  const recovery::Decision decision = recovery::decide_retry(config_.recovery, ending);
  close_attempt(request, event, now);
  if (decision.retry) {
    switch (find_place(request, now, out)) {
      case Placed::Sent: ++totals_.retries; return;
      case Placed::Waits:
      case Placed::WaitsApart:
      case Placed::Held: return;
      case Placed::QueueFull:
      case Placed::Nowhere: break;
    }
  }
  if (waits_on(request, event, now)) return;
  const bool unreachable = decision.outcome == model::Outcome::EngineUnreachable;
  conclude(request, decision.outcome, decision.answer,
           unreachable ? kUnreachableRetryAfter : event.retry_after, out);
}

// Who has waited for its turn and meets nothing but refused connections waits on in its old place,
// until somebody is there, its time is up, or all have been down for as long as an ejection lasts:
// nothing was spent on it, and an outage of a moment costs it a moment.
bool Core::waits_on(Request& request, const model::AttemptEnded& event, Instant now) {
  if (event.result != model::AttemptResult::ConnectError || !request.has_waited) return false;
  if (request.answers > 0) return false;
  const bool moment = std::ranges::any_of(request.tried, [&](model::EndpointId id) {
    return rests(id, now);
  });
  if (!moment || !servable(request.model) || !enqueue(request, request.waiting_since)) {
    return false;
  }
  request.forgiven = request.attempts;
  request.tried.clear();
  return true;
}

}  // namespace signalbox::flow
