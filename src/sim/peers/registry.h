// SPDX-License-Identifier: Apache-2.0
// The peers by name.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "base/result.h"
#include "sim/peers/rule.h"

namespace signalbox::peers {

struct Peer {
  std::string_view name;
  std::string_view source;  // where the rule is defined
  std::unique_ptr<Rule> (*make)() = nullptr;
};

std::span<const Peer> all();

// An unknown name is an error that lists those there are.
Result<Peer> find(std::string_view name);

}  // namespace signalbox::peers
