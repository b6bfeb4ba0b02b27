// SPDX-License-Identifier: Apache-2.0
// Least requests: the worker with the fewest of our requests in flight.
// Source: nginx `least_conn` (ngx_http_upstream_least_conn_module), equal weights; `max_fails=1
// fail_timeout=10s`; `proxy_next_upstream error timeout`, which for POST means connection errors.
// Left open: among equals nginx goes round robin; here they are drawn, which no burst can follow.
#include "sim/peers/rules.h"

namespace signalbox::peers {
namespace {

class LeastRequests : public Rule {
 public:
  Traits traits() const override {
    Traits traits;
    traits.retry.most = 1'000;  // as many as there are upstreams
    traits.retry.on_connect_error = traits.retry.avoids_tried = true;
    traits.breaker = {1, std::chrono::seconds(10), 1};
    return traits;
  }
  Choice choose(const Query&, std::span<const Slot> candidates, Fleet fleet, Instant,
                Rng& rng) override {
    const auto in_flight = [&](Slot slot) { return fleet[slot].in_flight; };
    return {Choice::Kind::Place, least_drawn(candidates, rng, in_flight), 0};
  }
};

}  // namespace

std::unique_ptr<Rule> least_requests() { return std::make_unique<LeastRequests>(); }

}  // namespace signalbox::peers
