// SPDX-License-Identifier: Apache-2.0
// The list of members that count in answers: see answer_keys.h.
#include "io/json/answer_keys.h"

namespace signalbox::json {

using model::Api;

bool has_choices(Api api) { return api == Api::ChatCompletions || api == Api::Completions; }

AnswerKey find_answer_key(Api api, std::string_view name) {
  if (name == "usage") return AnswerKey::Usage;
  if (name == "timings") return AnswerKey::Timings;
  if (name == "metrics") return AnswerKey::Metrics;
  if (name == "model") return AnswerKey::Model;
  if (name == "error") return AnswerKey::Error;
  if (name == "choices" && has_choices(api)) return AnswerKey::Choices;
  if (name == "status" && api == Api::Responses) return AnswerKey::Status;
  if (name == "stop_reason" && api == Api::Messages) return AnswerKey::StopReason;
  if (name == "input_tokens" && api == Api::CountTokens) return AnswerKey::InputTokens;
  return AnswerKey::None;
}

}  // namespace signalbox::json
