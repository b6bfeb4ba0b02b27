// SPDX-License-Identifier: Apache-2.0
// Asks the admin API of a running gateway. Blocking: for commands, never for serving threads.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace signalbox::app {

// `text` as one segment of a path, whatever is in it.
std::string percent_encoded(std::string_view text);

// The body of GET `path`. Errors say what to do: no gateway there, wrong token, unknown request.
Result<std::string> admin_get(const std::string& address, const std::string& path,
                              const std::string& token);

}  // namespace signalbox::app
