// SPDX-License-Identifier: Apache-2.0
// What recovery thinks of endpoints becomes what routing knows: who is out, and what a recent
// failure or a present silence costs.
#include <utility>

#include "core/flow/core.h"

namespace signalbox::flow {
namespace {

// A broken answer costs its user about this much: the time to notice and to ask again. The risk of
// it counts like a longer way to the endpoint, so that one failure already turns others away, long
// before an ejection, and no endpoint is lost for good.
constexpr double kFailureSeconds = 10;
constexpr double kRiskForgotten = 0.005;
// Shorter silences are noise of the network and of steps.
constexpr double kSilenceNoticed = 0.25;
constexpr std::size_t kPriceSlice = 256;

}  // namespace

// Who has shown nothing for so long may well go on for as long again, so the silence itself is the
// price (docs/decisions/0008).
void Core::price_trouble(model::EndpointId id, Instant now) {
  EndpointState* endpoint = find(id);
  if (endpoint == nullptr) return;
  const double risk = ejector_.failure_risk(id, now);
  const double silence = load_.silence(id, now);
  const double price = (risk < kRiskForgotten ? 0 : risk * kFailureSeconds) +
                       (silence < kSilenceNoticed ? 0 : silence);
  if (price == endpoint->trouble_price) return;
  endpoint->trouble_price = price;
  load_.set_reach(id, price);
}

// One slice of all endpoints; true: the round goes on.
bool Core::price_troubles(Instant now) {
  auto next = endpoints_.lower_bound(price_next_);
  for (std::size_t i = 0; i < kPriceSlice && next != endpoints_.end(); ++i, ++next) {
    load_.presume(next->first, now);
    price_trouble(next->first, now);
  }
  price_next_ = next == endpoints_.end() ? model::EndpointId{} : next->first;
  return static_cast<bool>(price_next_);
}

void Core::take_health_changes() {
  for (const model::EndpointId id : ejector_.take_changes()) {
    EndpointState* endpoint = find(id);
    if (endpoint == nullptr) continue;
    tell_availability(*endpoint);
    count_health(*endpoint);
  }
}

// Where nobody accepts connections, a request is sent only when no other endpoint is left. That
// needs no failures of requests to be known, and has no bound in the share that may be ejected: it
// is a fact about the endpoint, not a suspicion that could be the requests' own fault.
void Core::tell_availability(const EndpointState& endpoint) {
  const model::EndpointId id = endpoint.declared.id;
  const bool open = ejector_.accepts(id) && !endpoint.no_connection;
  load_.set_availability(id, open ? routing::Availability::Open : routing::Availability::Ejected);
}

void Core::connects(EndpointState& endpoint, bool yes) {
  if (endpoint.no_connection != yes) return;
  endpoint.no_connection = !yes;
  tell_availability(endpoint);
}

void Core::count_health(EndpointState& endpoint) {
  const bool healthy = endpoint.declared.serves && !endpoint.unreachable &&
                       ejector_.trusted(endpoint.declared.id);
  if (healthy == std::exchange(endpoint.healthy, healthy)) return;
  pools_.at(endpoint.declared.pool).healthy += healthy ? 1 : -1;
}

}  // namespace signalbox::flow
