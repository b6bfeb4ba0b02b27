// SPDX-License-Identifier: Apache-2.0
// Receive and admit: the request is known from here on and will end in exactly one outcome.
#include <algorithm>
#include <utility>

#include "core/flow/core.h"

namespace signalbox::flow {
namespace {

using Answer = model::Conclude::Answer;

const model::Route* find_route(const model::Fleet& fleet, model::RouteId id) {
  for (const model::Route& route : fleet.routes) {
    if (route.id == id) return &route;
  }
  return nullptr;
}

std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 32)) * 0xD6E8FEB86659FD93ull;
  return x ^ (x >> 32);
}

}  // namespace

void Core::on(model::RequestArrived&& event, Instant now, Actions& out) {
  const model::RequestId id = event.request;
  if (requests_.contains(id)) {
    ++totals_.illegal_events;
    return;
  }
  Request& request = *requests_.emplace(id, std::make_unique<Request>()).first->second;
  request.arrived = std::move(event);
  request.at = now;
  legal(request.grammar.take(model::RequestGrammar::Signal::Arrived));
  ++totals_.arrived;
  ledger_.arrived(id, request.arrived.tenant);

  if (drain_over_) {
    return conclude(request, model::Outcome::Draining, Answer::Local, kDrainRetryAfter, out);
  }
  if (!caps_.acquire(request.arrived.tenant)) {
    return conclude(request, model::Outcome::TenantLimit, Answer::Local, std::chrono::seconds(1),
                    out);
  }
  request.tenant_slot = true;
  if (!choose_model(request)) {
    return conclude(request, model::Outcome::NoEndpoint, Answer::Local, std::chrono::seconds(5),
                    out);
  }
  bind_chain(request);
  // First come, first served: nobody overtakes those who wait already, unless all of them wait for
  // reasons of their own.
  if (!queue_.empty(request.model) && !apart_.contains(request.model)) {
    return enqueue(request, now, out);
  }
  switch (place(request, now, out)) {
    case Placed::Sent: return;
    case Placed::Waits:
    case Placed::WaitsApart: return enqueue(request, now, out);
    case Placed::Nowhere:
      return conclude(request, model::Outcome::NoEndpoint, Answer::Local, std::chrono::seconds(5),
                      out);
  }
}

bool Core::servable(model::ModelId model) const {
  const auto found = pools_of_model_.find(model);
  if (found == pools_of_model_.end()) return false;
  for (const model::PoolId id : found->second) {
    if (!pools_.at(id).endpoints.empty()) return true;
  }
  return false;
}

// Whether the model has an endpoint that the tenant may use; `healthy`: one that nothing speaks
// against at present.
bool Core::servable(model::ModelId model, model::TenantId tenant, bool healthy) const {
  const auto found = pools_of_model_.find(model);
  if (found == pools_of_model_.end()) return false;
  for (const model::PoolId id : found->second) {
    const PoolState& pool = pools_.at(id);
    if (pool.declared.role != model::Role::Both) continue;  // does half of the work
    const std::vector<model::TenantId>& tenants = pool.declared.tenants;
    if (!tenants.empty() && !std::ranges::binary_search(tenants, tenant)) continue;
    if (healthy ? pool.healthy > 0 : !pool.endpoints.empty()) return true;
  }
  return false;
}

// Draws a target by weight among those that can serve, else takes the first fallback that can. Who
// is down as far as one knows serves only where nobody else is left.
bool Core::choose_model(Request& request) {
  const model::Route* route = find_route(*fleet_, request.arrived.route);
  if (route == nullptr) return false;
  const bool choice = route->targets.size() + route->fallback.size() > 1;
  if (!choice) {
    if (route->targets.empty() || !servable(route->targets[0].model)) return false;
    request.model = route->targets[0].model;
    return true;
  }
  const double draw = route->targets.size() > 1 ? route_rng_.uniform() : 0;
  for (const bool healthy : {true, false}) {
    if (draw_target(request, *route, draw, healthy)) return true;
    for (const model::ModelId fallback : route->fallback) {
      if (!servable(fallback, request.arrived.tenant, healthy)) continue;
      request.model = fallback;
      return true;
    }
  }
  return false;
}

bool Core::draw_target(Request& request, const model::Route& route, double draw, bool healthy) {
  const model::TenantId tenant = request.arrived.tenant;
  double total = 0;
  for (const model::Target& target : route.targets) {
    if (servable(target.model, tenant, healthy)) total += target.weight;
  }
  double left = draw * total;
  for (const model::Target& target : route.targets) {
    if (target.weight <= 0 || !servable(target.model, tenant, healthy)) continue;
    request.model = target.model;
    if (left < target.weight) return true;
    left -= target.weight;
  }
  return static_cast<bool>(request.model);
}

// Two models share no cache: the chain, which was folded before the target was chosen, is bound to
// it by a constant that keeps equal prefixes equal.
void Core::bind_chain(Request& request) const {
  const std::uint64_t key = mixed(request.model.value() + 0x9E3779B97F4A7C15ull);
  for (model::PromptNode& node : request.arrived.prompt.chain) node.hash ^= key;
}

}  // namespace signalbox::flow
