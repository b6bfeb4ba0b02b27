// SPDX-License-Identifier: Apache-2.0
// Recover: a failed attempt is tried elsewhere, or its request ends and says how.
#include "core/flow/core.h"

namespace signalbox::flow {
namespace {

// An endpoint that came back serves within a second.
constexpr Duration kUnreachableRetryAfter = std::chrono::seconds(1);

}  // namespace

void Core::failed(Request& request, const model::AttemptEnded& event, Instant now, Actions& out) {
  if (!request.has_first_token) index_.withdraw(request.endpoint, query(request));
  if (recovery::answered(event.result)) ++request.answers;
  request.tried.push_back(request.endpoint);
  const auto pool = pools_.find(request.pool);
  const recovery::Ending ending{event.result,
                                event.status,
                                event.delivered,
                                request.attempts,
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
  const bool unreachable = decision.outcome == model::Outcome::EngineUnreachable;
  conclude(request, decision.outcome, decision.answer,
           unreachable ? kUnreachableRetryAfter : event.retry_after, out);
}

}  // namespace signalbox::flow
