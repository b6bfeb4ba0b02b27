// SPDX-License-Identifier: Apache-2.0
// What came of a run.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/histogram.h"
#include "base/time.h"
#include "core/model/outcome.h"
#include "sim/series.h"

namespace signalbox::sim {

// Sums over all engines and incarnations, from their own counters.
struct EngineSums {
  std::int64_t prompt_tokens = 0;
  std::int64_t cached_tokens = 0;
  std::int64_t generated_tokens = 0;
  std::int64_t preemptions = 0;
  std::int64_t drafted_tokens = 0;
  std::int64_t accepted_tokens = 0;
  std::int64_t host_tokens = 0;
  std::int64_t lora_loads = 0;
  std::int64_t finished = 0;
  double busy_seconds = 0;
  double busy_usd = 0;       // their price, as the scenario declares it
};

struct Report {
  std::uint64_t seed = 0;
  Duration elapsed{};                    // virtual
  Duration measured{};                   // of it, after the warm-up
  std::uint64_t arrived = 0;
  std::array<std::uint64_t, model::kOutcomes.size()> outcomes{};
  // What users saw, of tasks that came after the warm-up; the rest of the report is of all.
  std::uint64_t good = 0;                // requests completed within both objectives
  Histogram ttft;                        // s, from arrival to the first token at the gateway
  Histogram e2e;                         // s, of completed requests
  std::uint64_t tasks = 0;               // what users wanted; each is one request or more
  std::uint64_t tasks_done = 0;          // that got an answer
  std::uint64_t tasks_good = 0;          // within both objectives, from their first request on
  Histogram task_e2e;                    // s, of tasks done, from their first request on
  Histogram task_ttft;                   // s, likewise, to the first token
  Histogram tpot;                        // s per token after the first, of streamed answers
  Histogram transfer;                    // s, from the end of a prefill to its KV at who decodes
  std::uint64_t client_retries = 0;      // requests that a client's library sent again
  std::uint64_t client_timeouts = 0;     // requests that it gave up waiting for
  std::uint64_t pressed = 0;             // requests that a user sent beside another

  EngineSums engines;
  double engine_seconds = 0;             // of engines in the fleet, up or not
  double usd = 0;                        // what they cost
  std::int64_t answer_tokens = 0;        // of requests completed
  std::int64_t lost_tokens = 0;          // clients had them when their answer broke off
  std::uint64_t retries = 0;
  std::uint64_t events = 0;
  std::uint64_t stale_events = 0;        // as the core counts them
  double ttft_error = 0;                 // median of |log(actual / predicted)|, worst pool
  std::uint64_t digest = 0;              // of every action with its time: equal runs, equal digests
  std::vector<std::string> violations;   // the run ends at the first
  Series series;

  double goodput() const {               // requests per second
    return measured > Duration::zero() ? static_cast<double>(good) / to_seconds(measured) : 0;
  }
  double cache_hit() const {             // share of prompt tokens
    return engines.prompt_tokens > 0 ? static_cast<double>(engines.cached_tokens) /
                                           static_cast<double>(engines.prompt_tokens)
                                     : 0;
  }
  std::uint64_t count(model::Outcome outcome) const {
    return outcomes[static_cast<std::size_t>(outcome)];
  }
};

}  // namespace signalbox::sim
