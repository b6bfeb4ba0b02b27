// SPDX-License-Identifier: Apache-2.0
// What may go on of the fields of a client's head that are no part of HTTP: most does. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace signalbox::gateway {

enum class FieldUse : std::uint8_t {
  Passes,
  Trusted,   // tells who asks, or for whom: from listed peers alone (Gateway.trusted_peers)
  Withheld,  // steers an engine, its sidecar or another proxy, or may be read as what does
};

// Of a field whose name no head of ours knows, in any case. `listed`: the names that may go on, for
// lists of those that may not are never whole; none: all others pass.
FieldUse use_of(std::string_view name, std::span<const std::string> listed);

}  // namespace signalbox::gateway
