// SPDX-License-Identifier: Apache-2.0
// Takes a decision apart: every kept candidate with its terms, what made others infeasible, the
// runner-up, and the smallest change of a recorded input that would have changed the choice. Pure;
// computed on demand from what the decision recorded, off the hot path.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/routing/decision.h"

namespace signalbox::routing {

// The recorded inputs in which a flip is looked for.
enum class Field : std::uint8_t {
  Cached,    // prompt tokens held; u changes with it
  Wait,      // seconds of queued prefill
  InFlight,  // requests in flight; the tokens they hold stay as they are
};

// One change that takes the choice away from the chosen place: with it the runner-up is better than
// the chosen one by more than the tie band, so no draw could choose the latter.
struct Flip {
  model::EndpointId endpoint;  // whose input changes: the chosen one or the runner-up
  Field field = Field::Cached;
  float from = 0;
  float to = 0;
  float relative = 0;          // size of the change, relative to prompt, T or requests in flight
};

struct Candidate {
  Inputs inputs;
  Terms terms;
};

struct Refused {
  Reason reason;
  Refusals refusals;
};

struct Explanation {
  Decision::Kind kind = Decision::Kind::None;
  bool objective_missed = false;
  bool retried = false;
  bool ejected = false;
  bool drawn = false;                       // chosen by lot among near-ties
  std::uint32_t evaluated = 0;
  std::uint32_t near_ties = 0;
  Ask ask;
  std::vector<Candidate> candidates;        // best first
  std::size_t chosen = 0;                   // index among them; of a placement alone
  std::optional<std::size_t> runner_up;     // the best other one
  std::optional<Flip> flip;                 // absent without a runner-up
  std::vector<Refused> refused;             // only those that occurred
};

Explanation explain(const Decision& decision);

// The inputs with one field set to `value`.
Inputs with(Inputs inputs, Field field, float value);

// "10.0.0.3:8000 would have won with 812 fewer uncached tokens"; `name` tells what people call an
// endpoint.
std::string sentence(const Explanation& explanation,
                     const std::function<std::string(model::EndpointId)>& name);

}  // namespace signalbox::routing
