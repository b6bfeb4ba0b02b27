// SPDX-License-Identifier: Apache-2.0
// Tokens of the prompts in flight per slot, shared pieces counted once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/peers/flat_map.h"
#include "sim/peers/holders.h"
#include "sim/peers/query.h"

namespace signalbox::peers {

class ActiveBlocks {
 public:
  void begin(Slot slot, std::span<const Piece> prompt);
  void end(Slot slot, std::span<const Piece> prompt);

  // tokens[slot]: of the prompt that is in flight there already.
  void match(std::span<const Piece> prompt, std::span<std::int64_t> tokens) const {
    held_.match(prompt, tokens);
  }
  std::int64_t tokens(Slot slot) const { return slot < tokens_.size() ? tokens_[slot] : 0; }

 private:
  static std::uint64_t key(std::uint64_t hash, Slot slot);

  Holders held_;
  FlatMap<std::uint32_t> counts_;  // prompts in flight with that piece there
  std::vector<std::int64_t> tokens_;
};

}  // namespace signalbox::peers
