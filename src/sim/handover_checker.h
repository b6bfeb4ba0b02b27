// SPDX-License-Identifier: Apache-2.0
// Watches what prefill engines hand over: nothing starts before its prompt is computed, nothing
// arrives sooner than the link allows, and one link carries one transfer at a time. Keeps its own
// account of times and bytes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/time.h"
#include "sim/engine/spec.h"
#include "sim/scenario.h"

namespace signalbox::sim {

class HandoverChecker {
 public:
  // The prompt was computed at `now`, by engine `from`.
  void prefilled(truth::SequenceId id, std::uint32_t from, Instant now);
  // So many bytes of its KV arrived over that link; what is wrong with that, if anything.
  std::optional<std::string> arrived(truth::SequenceId id, const Link& link, double bytes,
                                     Instant now);
  // It will not arrive.
  void dropped(truth::SequenceId id) { open_.erase(id); }

 private:
  struct Open {
    std::uint32_t from = 0;
    Instant since{};
  };
  std::map<truth::SequenceId, Open> open_;
  std::map<std::uint32_t, Instant> last_;  // arrival over each engine's link
};

}  // namespace signalbox::sim
