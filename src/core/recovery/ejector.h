// SPDX-License-Identifier: Apache-2.0
// Takes endpoints that keep failing out of service and lets them back in. Under the core's lock.
//
//   In --(failures_in_a_row)--> Out --(ejection)--> ProbeReady --(one request)--> Probing
//   Probing: success -> In; failure -> Out again; neutral -> ProbeReady
//
// Keeps: at most floor(ejected_share_max · size) endpoints of a pool are not In, counted when one
// goes out; exactly one probe at a time. An attempt speaks only for the period it was sent in: what
// was under way when its endpoint went out neither readmits it nor counts against it later.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/time.h"
#include "core/model/event.h"
#include "core/model/ids.h"
#include "core/recovery/config.h"

namespace signalbox::recovery {

// What an attempt's end says about its endpoint.
enum class Health : std::uint8_t { Good, Bad, Neutral };

// Bad: connect error, reset, 5xx, truncated, error event, unfit, timeout. Neutral: 4xx, 429, what
// we ended ourselves or lacked the means for.
Health health(model::AttemptResult result);

enum class Standing : std::uint8_t { In, Out, ProbeReady, Probing };

// What the caller keeps with an attempt and hands back at its end.
struct Pass {
  std::uint32_t period = 0;
  bool probe = false;
};

class Ejector {
 public:
  explicit Ejector(const Config& config) : config_(config) {}

  // Holds from the next failure on.
  void set_config(const Config& config) { config_ = config; }

  // ejected_share: of the pool's endpoints that may be out at once, 0..1; holds for the whole pool.
  void add(model::EndpointId endpoint, model::PoolId pool, double ejected_share);
  void remove(model::EndpointId endpoint);
  void set_ejected_share(model::PoolId pool, double ejected_share);

  // A request was sent to the endpoint. If it was ProbeReady, this request is the probe.
  Pass dispatched(model::EndpointId endpoint);
  // The request was sent at `now`.
  void tried(model::EndpointId endpoint, Instant now);
  // The attempt's first token came. A probe that then streams for as long as an ejection lasts
  // readmits its endpoint on trial: the next failure ejects it again.
  void first_token(model::EndpointId endpoint, const Pass& pass, Instant now);
  // Exactly once per dispatched(). Unknown endpoints are ignored: they left meanwhile.
  void ended(model::EndpointId endpoint, const Pass& pass, Health health, Instant now);
  // Does what is due. Call at next_wake() or later.
  void advance(Instant now);
  Instant next_wake() const;

  Standing standing(model::EndpointId endpoint) const;
  // Whether a request may be placed there in the ordinary way: In, or ProbeReady for the probe.
  bool accepts(model::EndpointId endpoint) const;
  // Whether nothing speaks against it: it accepts, and has not just failed as often as ejects one,
  // which is In all the same where no more of its pool may go out. Trusted again when an ejection
  // would have been over.
  bool trusted(model::EndpointId endpoint) const;
  // Chance (0..1) that the next request fails there, from failures in a row that fade with a half
  // life of one ejection. Keeps traffic away from a bad endpoint before it is ejected.
  double failure_risk(model::EndpointId endpoint, Instant now) const;
  // Until when one who waits had better wait on than go there, because it has failed, or was tried
  // again, a moment ago: a moment that doubles with every failure in a row, up to half a second,
  // and is not drawn out by failures of what was sent before. Past once it shows a token, or has
  // failed for as long as an ejection lasts: then it is down, and who waits for it should be told.
  Instant rests_until(model::EndpointId endpoint, Instant now) const;
  // For a pool of which nobody accepts: the one with the fewest failures, then whose last one is
  // oldest. Failing raises its count, so the least bad takes turns. 0: none but the excluded.
  model::EndpointId least_bad(model::PoolId pool,
                              std::span<const model::EndpointId> excluded) const;
  // Endpoints whose accepts() or trusted() may have changed since the last call, each once, in the
  // order of change.
  std::vector<model::EndpointId> take_changes();

 private:
  struct State {
    model::PoolId pool;
    Standing standing = Standing::In;
    int failures = 0;
    std::uint32_t period = 0;  // counts ejections
    Instant failing_since{};   // the first failure of those in a row
    Instant last_failure{};
    Instant last_try{};        // then, or when a request was last sent there since
    bool answers = false;      // it has shown a token since
    Instant timer = kNever;    // Out: ready for a probe; Probing: readmitted on trial; In: trusted
    bool failing = false;      // In, and not trusted
    bool changed = false;
  };
  using Rank = std::tuple<int, Instant, model::EndpointId>;
  struct Pool {
    double share = 0.5;
    int size = 0;
    std::set<Rank> out;  // all that are not In, least bad first
  };

  static Rank rank(const State& s, model::EndpointId endpoint) {
    return {s.failures, s.last_failure, endpoint};
  }
  void good(model::EndpointId endpoint, State& s, int failures);
  void bad(model::EndpointId endpoint, State& s, const Pass& pass, Instant now);
  void eject(model::EndpointId endpoint, State& s, Instant now);
  void change(model::EndpointId endpoint, State& s, Standing standing);
  void set_failing(model::EndpointId endpoint, State& s, bool failing, Instant until);
  void set_timer(model::EndpointId endpoint, State& s, Instant when);

  Config config_;
  std::unordered_map<model::EndpointId, State> endpoints_;  // looked up, never walked
  std::unordered_map<model::PoolId, Pool> pools_;           // likewise
  std::set<std::pair<Instant, model::EndpointId>> timers_;
  std::vector<model::EndpointId> changes_;
};

}  // namespace signalbox::recovery
