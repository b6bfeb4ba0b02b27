// SPDX-License-Identifier: Apache-2.0
// Retry rules and the outcome of each way to end.
#include "core/recovery/retry.h"

#include "base/check.h"

namespace signalbox::recovery {
namespace {

using model::AttemptResult;
using model::Outcome;
using Answer = model::Conclude::Answer;

struct End {
  Outcome outcome;
  Answer answer;
};

End end_of(const Ending& e) {
  switch (e.result) {
    case AttemptResult::Ok: return {Outcome::Completed, Answer::PassOn};
    case AttemptResult::ClientError: return {Outcome::EngineClientError, Answer::PassOn};
    case AttemptResult::Throttled: return {Outcome::EngineThrottled, Answer::PassOn};
    case AttemptResult::ServerError: return {Outcome::EngineError, Answer::PassOn};
    case AttemptResult::Unfit: return {Outcome::EngineError, Answer::Local};
    case AttemptResult::ConnectError:
    case AttemptResult::Reset: return {Outcome::EngineUnreachable, Answer::Local};
    case AttemptResult::Truncated:
      return {e.delivered ? Outcome::Truncated : Outcome::EngineUnreachable, Answer::Local};
    case AttemptResult::StreamError:
      return {e.delivered ? Outcome::Truncated : Outcome::EngineError, Answer::PassOn};
    case AttemptResult::FirstTokenTimeout:  // events without content may be out already
    case AttemptResult::IdleTimeout:
      return {e.delivered ? Outcome::Truncated : Outcome::EngineTimeout, Answer::Local};
    case AttemptResult::Aborted: return {Outcome::ClientGone, Answer::None};
    case AttemptResult::Shortage: return {Outcome::GatewayLimit, Answer::Local};
    case AttemptResult::Overrun: return {Outcome::GatewayLimit, Answer::PassOn};
  }
  CHECK(false);
}

bool mendable(const Ending& e) {
  switch (e.result) {
    case AttemptResult::ConnectError:
    case AttemptResult::Reset:
    case AttemptResult::Truncated:
    case AttemptResult::Unfit:
    case AttemptResult::Shortage: return true;  // another engine may have a connection kept
    case AttemptResult::ServerError: return e.status == 500 || e.status == 502 || e.status == 503;
    default: return false;
  }
}

Reason reason_of(const Config& config, const Ending& e) {
  if (!mendable(e)) return Reason::Over;
  if (e.delivered) return Reason::Delivered;
  if (e.attempts >= config.attempts_max) return Reason::AttemptsUsed;
  if (e.answers >= config.answers_max) return Reason::AnswersUsed;
  if (!e.endpoint_left) return Reason::NowhereElse;
  // A refused connection has cost no engine anything: no storm can come of it.
  const bool free = e.result == AttemptResult::ConnectError;
  return free || e.budget_left ? Reason::Retry : Reason::BudgetUsed;
}

}  // namespace

std::string_view name(Reason reason) {
  switch (reason) {
    case Reason::Retry: return "retry";
    case Reason::Over: return "over";
    case Reason::Delivered: return "delivered";
    case Reason::AttemptsUsed: return "attempts_used";
    case Reason::AnswersUsed: return "answers_used";
    case Reason::BudgetUsed: return "budget_used";
    case Reason::NowhereElse: return "nowhere_else";
  }
  CHECK(false);
}

bool answered(model::AttemptResult result) {
  return result == AttemptResult::ServerError || result == AttemptResult::Truncated ||
         result == AttemptResult::StreamError || result == AttemptResult::Unfit;
}

Decision decide_retry(const Config& config, const Ending& ending) {
  const Reason reason = reason_of(config, ending);
  const End end = end_of(ending);
  return {reason == Reason::Retry, reason, end.outcome, end.answer};
}

}  // namespace signalbox::recovery
