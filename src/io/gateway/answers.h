// SPDX-License-Identifier: Apache-2.0
// Our own answers: the sentence and the code for each way in which we end a request ourselves.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/model/event.h"
#include "core/model/outcome.h"

namespace signalbox::gateway {

struct OwnAnswer {
  int status = 500;
  std::string_view code;     // OpenAI's error.code
  std::string_view message;  // for the client
};

// For an outcome that the core concluded without an engine's answer.
OwnAnswer own_answer(model::Outcome outcome);

// "The model 'x' does not exist. Available: a, b, c."; at most a dozen names.
std::string unknown_model(std::string_view asked, const std::vector<std::string>& names);

// The event that ends a broken stream, in the API's own shape, with its blank line.
std::string error_event(model::Api api, const OwnAnswer& answer);

// Paths that we answer ourselves, to GET: the models, and health.
bool answers_itself(std::string_view path);

}  // namespace signalbox::gateway
