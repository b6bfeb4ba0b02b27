// SPDX-License-Identifier: Apache-2.0
// What readers (admin API, metrics, `top`) see of the core: copies, made under the lock.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/time.h"
#include "core/model/fleet.h"
#include "core/model/ids.h"
#include "core/model/outcome.h"
#include "core/perf/calibrator.h"
#include "core/recovery/ejector.h"
#include "core/routing/endpoint.h"

namespace signalbox::flow {

struct EndpointView {
  model::EndpointId id;
  model::PoolId pool;
  routing::Load load;
  recovery::Standing standing = recovery::Standing::In;
  double failure_risk = 0;          // 0..1
  bool serves = true;               // false: it lists other models
  bool observed = false;            // a look has succeeded
  bool unreachable = false;         // the last look failed
  bool no_connection = false;       // it did not even accept one
  Duration since_observed{};        // since the last good look; before it, since it was declared
  double factor = 1;                // of its speed against its pool's
  double kv_usage = -1;             // as the engine says, 0..1; negative: not told
  std::int64_t cached_tokens = 0;   // prompt tokens that we believe it holds
};

struct PoolView {
  model::PoolId id;
  perf::Origin prior_origin = perf::Origin::Wide;
  std::string prior_source;
  perf::Coefficients prior;
  perf::Coefficients coefficients;  // calibrated
  perf::Factors factors;
  perf::Uncertainty sigma;
  std::uint64_t prefill_observations = 0;
  std::uint64_t decode_observations = 0;
};

// How a pool's requests depart.
struct DispatchView {
  model::DispatchMode mode = model::DispatchMode::Immediate;
  bool automatic = false;  // chosen from what was seen
  int instances = 0;   // by shuttle: engines that are healthy
  Duration pass{};     // mean length of their passes; 0: none was seen
  Duration window{};   // between departures of two engines, on the mean
};

struct Totals {
  std::uint64_t arrived = 0;
  std::array<std::uint64_t, model::kOutcomes.size()> outcomes{};  // by Outcome
  std::uint64_t in_flight = 0;
  std::uint64_t waiting = 0;
  std::uint64_t waiting_bytes = 0;
  std::uint64_t retries = 0;
  std::uint64_t stale_events = 0;
  std::uint64_t illegal_events = 0;
  std::uint64_t decisions = 0;
  std::uint64_t candidates_evaluated = 0;
};

}  // namespace signalbox::flow
