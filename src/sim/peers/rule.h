// SPDX-License-Identifier: Apache-2.0
// One peer's routing rule: what it keeps, what it chooses, how it retries. Pure: chance and time
// are arguments. A rule sees what the real router would see, and no more: its own requests, the
// last look at each endpoint, KV events where it listens to them.
#pragma once

#include <cstdint>
#include <span>

#include "base/rng.h"
#include "base/time.h"
#include "core/model/engine_state.h"
#include "sim/engine/cache_event.h"
#include "sim/peers/profile.h"
#include "sim/peers/query.h"

namespace signalbox::peers {

// What every router keeps of an endpoint, by slot; the host of the rule (sim/peer_decider.h) does.
struct Seen {
  std::uint64_t name = 0;           // hash of its address
  bool present = false;
  int in_flight = 0;                // own requests there
  std::int64_t prefill_tokens = 0;  // uncached, of own requests there without a first token
  Profile profile;
  bool looked = false;              // a look has succeeded
  Instant looked_at{};
  model::EngineState state;         // of the last look
  std::int64_t waiting_tokens = 0;  // told by SGLang beside it
};

using Fleet = std::span<const Seen>;

// Retries before the first byte to the client. None by default.
struct Retry {
  int most = 0;                 // after the first try
  bool on_connect_error = false;
  bool on_failure = false;      // reset, 5xx, half an answer
  bool on_throttled = false;    // 429
  bool avoids_tried = false;    // goes where it has not been
  Duration first{};             // back-off before the first retry
  Duration longest{};
  double factor = 1;            // from one to the next
  double jitter = 0;            // ± share
};

// Passive health: who fails `failures` times in a row is left alone for a while. 0: never.
struct Breaker {
  int failures = 0;
  Duration open{};
  int successes = 1;  // that close it again
  bool broken_only = false;  // counts broken connections alone, no answers
};

struct Traits {
  Retry retry;
  Breaker breaker;
  Duration unready_after{};     // without a successful look an endpoint is left out; 0: never
  Duration look_every{};        // 0: never looks, or as often as the world says
  Duration look_lag_max{};
  bool sees_tokens = false;     // engines stream to it even what its client wants whole
  bool load_details = false;    // Seen::waiting_tokens
  bool cache_events = false;
};

class Rule {
 public:
  virtual ~Rule() = default;

  virtual Traits traits() const = 0;

  // `candidates`: slots that serve the model and are not left out, ascending; never empty.
  virtual Choice choose(const Query& query, std::span<const Slot> candidates, Fleet fleet,
                        Instant now, Rng& rng) = 0;

  // The request goes there. Not called for other kinds of choice.
  virtual void sent(const Query&, const Choice&, Fleet, Instant) {}
  virtual void first_token(const Flight&, Instant) {}
  // However it ended, or when its endpoint leaves: once for each that was sent.
  virtual void ended(const Flight&, Instant) {}

  virtual void joined(Slot, Fleet) {}
  virtual void left(Slot) {}
  virtual void looked(Slot, Fleet, Instant) {}
  virtual void cache_changed(Slot, std::span<const truth::CacheEvent>) {}
};

// SMG (SGLang's model gateway) and what is built into it: five retries, 50 ms to 30 s by 1.5,
// jitter 0.2, on 408, 429, 5xx and connection errors; breaker 10 failures, 60 s, 3 successes;
// unready after three health checks a minute apart. lightseekorg/smg
// docs/configuration/resilience.md.
Traits smg_traits();

// The least of `key(slot)`; the first of equals.
template <typename Key>
Slot least(std::span<const Slot> candidates, Key key) {
  Slot best = candidates.front();
  auto best_key = key(best);
  for (const Slot slot : candidates.subspan(1)) {
    const auto its = key(slot);
    if (its < best_key) best_key = its, best = slot;
  }
  return best;
}

// The least of `key(slot)`; equals are drawn among.
template <typename Key>
Slot least_drawn(std::span<const Slot> candidates, Rng& rng, Key key) {
  Slot best = candidates.front();
  auto best_key = key(best);
  std::uint64_t equals = 1;
  for (const Slot slot : candidates.subspan(1)) {
    const auto its = key(slot);
    if (its < best_key) {
      best_key = its;
      best = slot;
      equals = 1;
    } else if (!(best_key < its) && rng.below(++equals) == 0) {
      best = slot;
    }
  }
  return best;
}

}  // namespace signalbox::peers
