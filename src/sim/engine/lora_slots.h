// SPDX-License-Identifier: Apache-2.0
// The adapters that are loaded beside a model: a few slots, of which the least recently used that
// nobody runs with gives way. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace signalbox::truth {

class LoraSlots {
 public:
  // 0: every adapter is loaded, always.
  explicit LoraSlots(std::size_t slots) : slots_(slots) {}

  enum class Entry : std::uint8_t { Loaded, Loads, Full };
  // What would happen to a sequence with the adapter (0: none) that wants to run now.
  Entry ask(std::uint64_t lora) const;
  // It runs. Not when Full.
  void enter(std::uint64_t lora);
  // It runs no more; the adapter stays until its slot is wanted.
  void leave(std::uint64_t lora);
  void clear() { loaded_.clear(); }

 private:
  struct Loaded {
    std::uint64_t lora = 0;
    std::int64_t runs = 0;  // sequences with it
  };
  bool limits(std::uint64_t lora) const { return slots_ > 0 && lora != 0; }

  std::size_t slots_;
  std::vector<Loaded> loaded_;  // least recently entered first
};

}  // namespace signalbox::truth
