// SPDX-License-Identifier: Apache-2.0
// What routing is asked: one request that wants a place now.
#pragma once

#include <cstdint>
#include <span>

#include "base/time.h"
#include "core/cache/match.h"
#include "core/model/fleet.h"
#include "core/model/ids.h"

namespace signalbox::routing {

// Spans and pointers have to live for the call only.
struct Query {
  model::ModelId model;
  std::span<const model::PoolId> pools;       // pools of the model that may serve it
  model::TenantId tenant;                     // 0: none
  std::uint64_t lora = 0;                     // hash of the adapter's name; 0: none
  model::Role role = model::Role::Both;       // the part of the work that is wanted
  std::int64_t prompt_tokens = 1;
  const cache::Match* match = nullptr;        // null: nobody holds anything
  double output_mean = 1;                     // expected output tokens
  Duration ttft = Duration::max();            // objectives, soft; max(): none
  Duration tpot = Duration::max();
  Duration e2e = Duration::max();
  double latency_weight = 1;                  // w
  double seconds_per_usd = 0;
  std::span<const model::EndpointId> tried;   // avoided unless nothing else is left; a few
  bool ejected_allowed = false;               // when no other is left, ejected ones may serve
};

}  // namespace signalbox::routing
