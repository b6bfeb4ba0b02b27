// SPDX-License-Identifier: Apache-2.0
// Whether a failed attempt is tried again elsewhere, and if not, how the request ends. Pure.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/model/action.h"
#include "core/model/event.h"
#include "core/model/outcome.h"
#include "core/recovery/config.h"

namespace signalbox::recovery {

// The end of an attempt and what the request has been through.
struct Ending {
  model::AttemptResult result = model::AttemptResult::Ok;
  int status = 0;            // HTTP status of the engine; 0: none came
  bool delivered = false;    // bytes of an answer have gone to the client
  int attempts = 1;          // of this request so far, this one included
  int answers = 0;           // failing answers of engines so far, this one included; see answered()
  bool budget_left = true;   // RetryBudget::left() of the pool
  bool endpoint_left = true; // another endpoint that was not tried may serve it
};

enum class Reason : std::uint8_t {
  Retry,
  Over,           // nothing went wrong that another endpoint could mend
  Delivered,      // bytes went to the client: another answer would repeat them
  AttemptsUsed,
  AnswersUsed,    // several engines answered alike: it is the request or the fleet
  BudgetUsed,
  NowhereElse,
};

std::string_view name(Reason reason);

struct Decision {
  bool retry = false;
  Reason reason = Reason::Over;
  // How the request ends if it is not tried again; meaningful also when retry is true and the
  // retry then finds no place.
  model::Outcome outcome = model::Outcome::Completed;
  model::Conclude::Answer answer = model::Conclude::Answer::PassOn;
};

// Whether the attempt counts as an answer of an engine that failed: 5xx, or part of an answer.
bool answered(model::AttemptResult result);

// Tries again before the first byte on connect error, reset, 500, 502, 503 and half an answer;
// never on 429 or another 4xx, nor on what took long already.
Decision decide_retry(const Config& config, const Ending& ending);

}  // namespace signalbox::recovery
