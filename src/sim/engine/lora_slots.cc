// SPDX-License-Identifier: Apache-2.0
// A short list in the order of use.
#include "sim/engine/lora_slots.h"

#include <algorithm>

#include "base/check.h"

namespace signalbox::truth {

LoraSlots::Entry LoraSlots::ask(std::uint64_t lora) const {
  if (!limits(lora)) return Entry::Loaded;
  bool idle = loaded_.size() < slots_;
  for (const Loaded& loaded : loaded_) {
    if (loaded.lora == lora) return Entry::Loaded;
    idle |= loaded.runs == 0;
  }
  return idle ? Entry::Loads : Entry::Full;
}

void LoraSlots::enter(std::uint64_t lora) {
  if (!limits(lora)) return;
  const auto same = [&](const Loaded& loaded) { return loaded.lora == lora; };
  const auto idle = [](const Loaded& loaded) { return loaded.runs == 0; };
  Loaded entered{lora, 1};
  auto at = std::find_if(loaded_.begin(), loaded_.end(), same);
  if (at != loaded_.end()) {
    entered.runs += at->runs;
  } else if (loaded_.size() == slots_) {
    at = std::find_if(loaded_.begin(), loaded_.end(), idle);
    CHECK(at != loaded_.end());
  }
  if (at != loaded_.end()) loaded_.erase(at);
  loaded_.push_back(entered);
}

void LoraSlots::leave(std::uint64_t lora) {
  if (!limits(lora)) return;
  for (Loaded& loaded : loaded_) {
    if (loaded.lora == lora) --loaded.runs;
  }
}

}  // namespace signalbox::truth
