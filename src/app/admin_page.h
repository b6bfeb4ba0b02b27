// SPDX-License-Identifier: Apache-2.0
// Pages of the admin API as a command receives and shows them. Pure: text in, text out.
// Anybody may listen at an admin address: another program, another version. What has not the shape
// of the page asked for is an error that says so; whatever else is missing, or of another type than
// ours, stays blank.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace signalbox::app {

// What a command shows. Models, Pools and Endpoints are parts of /v1/fleet, Decisions and Explained
// (decisions with their candidates) of /v1/decisions.
enum class View { Models, Pools, Endpoints, Decisions, Explained };

// The view in a page's body, as a table.
Result<std::string> page_table(View view, std::string_view body);
// The same as indented JSON.
Result<std::string> page_json(View view, std::string_view body);
// The screen of `top`, under the address that it asked.
Result<std::string> page_screen(const std::string& address, std::string_view fleet,
                                std::string_view decisions);

}  // namespace signalbox::app
