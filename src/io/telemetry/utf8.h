// SPDX-License-Identifier: Apache-2.0
// The length of one UTF-8 character, for texts of ours that quote what clients sent. Pure.
#pragma once

#include <cstddef>
#include <string_view>

namespace signalbox::telemetry {

// Bytes of the well-formed character at the front of `text` (not empty); 0: it is not well-formed
// (RFC 3629: no surrogates, no overlong forms, nothing beyond U+10FFFF).
std::size_t utf8_length(std::string_view text);

}  // namespace signalbox::telemetry
