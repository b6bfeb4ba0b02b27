// SPDX-License-Identifier: Apache-2.0
// What recovery thinks of endpoints becomes what routing knows: who is out, and what a recent
// failure costs.
#include "core/flow/core.h"

namespace signalbox::flow {
namespace {

// A broken answer costs its user about this much: the time to notice and to ask again. The risk of
// it counts like a longer way to the endpoint, so that one failure already turns others away, long
// before an ejection, and no endpoint is lost for good.
constexpr double kFailureSeconds = 10;
constexpr double kRiskForgotten = 0.005;

}  // namespace

void Core::price_risk(model::EndpointId id, Instant now) {
  if (!endpoints_.contains(id)) return;
  const double risk = ejector_.failure_risk(id, now);
  if (risk < kRiskForgotten && !risky_.contains(id)) return;
  if (risk < kRiskForgotten) risky_.erase(id);
  else risky_.insert(id);
  load_.set_reach(id, risk < kRiskForgotten ? 0 : risk * kFailureSeconds);
  if (!risky_.empty()) refresh_at_ = std::min(refresh_at_, now + std::chrono::milliseconds(250));
}

void Core::take_health_changes(Instant) {
  for (const model::EndpointId id : ejector_.take_changes()) {
    if (!endpoints_.contains(id)) continue;
    load_.set_availability(id, ejector_.accepts(id) ? routing::Availability::Open
                                                    : routing::Availability::Ejected);
  }
}

}  // namespace signalbox::flow
