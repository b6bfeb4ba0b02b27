// SPDX-License-Identifier: Apache-2.0
// Events, actions and the fleet as bytes: the record that the event log keeps and `replay` reads.
// Little-endian; integers are LEB128 varints (signed ones zigzag), doubles are their 8 bytes,
// strings carry their length. decode(encode(x)) == x; broken bytes are refused with an Error.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/model/action.h"
#include "core/model/event.h"
#include "core/model/fleet.h"

namespace signalbox::model {

// Appends to `out`.
void encode(const Event& event, std::string& out);
void encode(const OwnedAction& action, std::string& out);
void encode(const Fleet& fleet, std::string& out);

// The whole of `bytes` must be one value.
Result<Event> decode_event(std::string_view bytes);
Result<Fleet> decode_fleet(std::string_view bytes);

}  // namespace signalbox::model
