// SPDX-License-Identifier: Apache-2.0
// JSON text from text, and the error bodies of both API families.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "core/model/event.h"

namespace signalbox::json {

// The inside of a JSON string. Invalid UTF-8 is replaced by U+FFFD, so that the result always is
// valid JSON.
std::string escape(std::string_view text);
// The same with quotes around it.
std::string quote(std::string_view text);
// JSON text whose strings were joined from pieces: invalid UTF-8 and halves of surrogate pairs that
// have no partner become U+FFFD, everything else stays as it is.
std::string mended(std::string json);

// {"error":{"message","type","param","code"}}; empty `param` and `code` become null.
std::string openai_error(std::string_view message, std::string_view type,
                         std::string_view param = {}, std::string_view code = {});
// {"type":"error","error":{"type","message"}}
std::string anthropic_error(std::string_view message, std::string_view type);
// The shape that the API's clients read, with type and code chosen from the HTTP status.
std::string error_body(model::Api api, int status, std::string_view message,
                       std::string_view param = {}, std::string_view code = {});

}  // namespace signalbox::json
