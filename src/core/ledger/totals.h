// SPDX-License-Identifier: Apache-2.0
// What the ledger sums: money, engine time, tokens, outcomes. Plain values.
#pragma once

#include <array>
#include <cstdint>

#include "base/time.h"
#include "core/model/outcome.h"

namespace signalbox::ledger {

// Integers, so that sums are exact in any order.
struct Cost {
  Duration engine_time{};         // the share of engines' time
  std::int64_t nanodollars = 0;   // 1e-9 USD

  double usd() const { return static_cast<double>(nanodollars) * 1e-9; }
  Cost& operator+=(const Cost& o) {
    engine_time += o.engine_time;
    nanodollars += o.nanodollars;
    return *this;
  }
  Cost& operator-=(const Cost& o) {
    engine_time -= o.engine_time;
    nanodollars -= o.nanodollars;
    return *this;
  }
  friend Cost operator+(Cost a, const Cost& b) { return a += b; }
  bool operator==(const Cost&) const = default;
};

struct Totals {
  std::array<std::uint64_t, model::kOutcomes.size()> outcomes{};  // by Outcome; ended requests
  std::uint64_t attempts = 0;           // ended ones
  std::int64_t prompt_tokens = 0;       // as engines reported; what was not told is not counted
  std::int64_t cached_tokens = 0;
  std::int64_t completion_tokens = 0;
  std::int64_t estimated_prompt_tokens = 0;      // of attempts whose engine did not get to report:
  std::int64_t estimated_completion_tokens = 0;  // believed, and counted as they were relayed
  Cost busy;                            // attributed to ended attempts
  Cost idle;                            // engines without any request; pools, endpoints and all

  std::uint64_t ended() const {
    std::uint64_t sum = 0;
    for (const std::uint64_t n : outcomes) sum += n;
    return sum;
  }
  std::uint64_t count(model::Outcome outcome) const {
    return outcomes[static_cast<std::size_t>(outcome)];
  }
  Totals& operator+=(const Totals& o) {
    for (std::size_t i = 0; i < outcomes.size(); ++i) outcomes[i] += o.outcomes[i];
    attempts += o.attempts;
    prompt_tokens += o.prompt_tokens;
    cached_tokens += o.cached_tokens;
    completion_tokens += o.completion_tokens;
    estimated_prompt_tokens += o.estimated_prompt_tokens;
    estimated_completion_tokens += o.estimated_completion_tokens;
    busy += o.busy;
    idle += o.idle;
    return *this;
  }
  // Counts never fall below zero as long as `o` is a part of these.
  Totals& operator-=(const Totals& o) {
    for (std::size_t i = 0; i < outcomes.size(); ++i) outcomes[i] -= o.outcomes[i];
    attempts -= o.attempts;
    prompt_tokens -= o.prompt_tokens;
    cached_tokens -= o.cached_tokens;
    completion_tokens -= o.completion_tokens;
    estimated_prompt_tokens -= o.estimated_prompt_tokens;
    estimated_completion_tokens -= o.estimated_completion_tokens;
    busy -= o.busy;
    idle -= o.idle;
    return *this;
  }
  bool operator==(const Totals&) const = default;
};

}  // namespace signalbox::ledger
