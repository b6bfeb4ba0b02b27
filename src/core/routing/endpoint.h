// SPDX-License-Identifier: Apache-2.0
// What routing knows of one endpoint: its facts as told, and its load.
#pragma once

#include <cstdint>
#include <vector>

#include "base/time.h"
#include "core/model/fleet.h"
#include "core/model/ids.h"
#include "core/perf/coefficients.h"
#include "core/routing/in_flight.h"
#include "core/routing/remaining.h"

namespace signalbox::routing {

// Given by whoever knows the fleet.
struct EndpointFacts {
  model::PoolId pool;
  model::ModelId model;
  std::uint64_t accelerator = 0;          // any key that is equal for equal hardware and speed
  model::Role role = model::Role::Both;
  std::vector<std::uint64_t> loras;       // hashes of the adapters it can serve
  std::vector<model::TenantId> tenants;   // who may use it; empty: everybody
  bool serves = true;                     // false: it has not got the model
  int concurrency_limit = 0;              // requests at once; 0: the default
  double usd_per_second = 0;
  double reach_seconds = 0;               // network and wake time
  std::int64_t context_tokens = 0;        // longest prompt and answer; 0: unknown
  perf::Coefficients coefficients;
  double uncertainty = 0;                 // relative, of predictions with these coefficients
};

enum class Availability : std::uint8_t { Open, Ejected, Asleep, Draining };

// What a dispatched request will cost its endpoint.
struct Work {
  std::int64_t fresh_tokens = 0;   // prompt tokens to compute
  std::int64_t cached_tokens = 0;  // prompt tokens held there
  double output_mean = 1;          // expected output tokens
  bool plain = false;              // not streamed: shows nothing before its end
};

// The load of an endpoint, for views.
struct Load {
  int ours = 0;                  // requests of ours in flight
  int queued = 0;                // of these, without a first token
  int held = 0;                  // of the latter, those that stay here for now
  int others = 0;                // requests of others, as of the last look
  int limit = 0;
  std::int64_t kv_tokens = 0;    // tokens of all in flight
  std::int64_t kv_used = 0;      // KV memory in use as far as known
  std::int64_t kv_capacity = 0;  // 0: unknown
  double wait_seconds = 0;       // W
  double step_seconds = 0;       // D
  double arrivals = 0;           // λ
  double uncertainty = 0;
};

// Where an endpoint stands in the search.
enum class Standing : std::uint8_t {
  Open, Full, Ejected, EjectedFull, Asleep, Draining, OtherModel
};
inline constexpr int kStandings = 7;

// State's own record of an endpoint.
struct Seat {
  model::EndpointId id;  // 0: free
  EndpointFacts facts;
  std::uint32_t bucket = 0;
  Standing standing = Standing::Draining;
  Availability availability = Availability::Open;
  bool engine_asleep = false;
  float fit = 0;               // largest prompt + output that it takes

  // Ours; those that are held here for it count as if they were there.
  int ours = 0;
  int queued = 0;
  std::int64_t kv_ours = 0;         // tokens of all ours
  std::int64_t kv_queued = 0;       // of those without a first token
  std::int64_t tokens_queued = 0;   // fresh ones of the latter: Q
  Duration prefill_queued{};        // W, the head's elapsed part not yet taken off
  Instant head_since{};             // when the head of `waiting` began
  Instant sign_at{};                // when an answer last grew
  RecordList waiting;               // no first token yet, in the order sent
  RecordList decoding;
  int plain_waiting = 0;            // of `waiting`, those that will show no first token
  std::int64_t plain_tokens = 0;    // fresh ones of these
  RecordList held;                  // not sent yet, in the order of their turns
  int held_count = 0;
  std::int64_t held_tokens = 0;     // fresh ones
  std::int64_t held_kv = 0;
  Duration held_prefill{};
  Remaining remaining;
  float arrivals = 0;               // per second, at the base time

  // Others', as of the last look.
  bool seen = false;
  Instant seen_at{};
  bool tells = false;               // its load, at the last look that told anything of it
  int others = 0;
  int others_waiting = 0;
  std::int64_t others_kv = 0;
  std::int64_t others_remaining = 0;  // output left, each
  Duration others_prefill{};          // of those that wait
  std::int64_t others_tokens = 0;
  std::int64_t gauge_kv = -1;         // KV tokens in use at the look; -1: not told
  std::int64_t kv_ours_at_gauge = 0;
  std::int64_t capacity_told = 0;     // 0: not told
  std::int64_t context_told = 0;

  bool grown = false;                 // in the present batch of progress
  std::uint64_t scored_in = 0;        // number of the last decision that scored it

  int in_flight() const { return ours + others; }
  std::int64_t kv() const { return kv_ours + others_kv; }
  std::int64_t capacity() const;      // KV tokens; 0: unknown
  std::int64_t kv_used() const;
};

}  // namespace signalbox::routing
