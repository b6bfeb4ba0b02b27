// SPDX-License-Identifier: Apache-2.0
// AnswerKey: the outermost members of a whole answer that count. One list for read_answer(), which
// reads them, and AnswerSkeleton, which keeps them.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/model/event.h"

namespace signalbox::json {

enum class AnswerKey : std::uint8_t {
  None, Choices, Usage, Timings, Metrics, Model, Error, Status, StopReason, InputTokens
};

// The API answers in choices; all others answer once.
bool has_choices(model::Api api);
// The key of that name, as it is written, if it counts in answers of this API, else None.
AnswerKey find_answer_key(model::Api api, std::string_view name);

}  // namespace signalbox::json
