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
  const model::ModelId model = choose_model(request);
  if (!model) {
    return conclude(request, model::Outcome::NoEndpoint, Answer::Local, std::chrono::seconds(5),
                    out);
  }
  bind(request, model);
  switch (find_place(request, now, out)) {
    case Placed::Sent:
    case Placed::Waits:
    case Placed::WaitsApart:
    case Placed::Held: return;
    case Placed::QueueFull:
      return conclude(request, model::Outcome::QueueFull, Answer::Local,
                      retry_after(request.model), out);
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

// Whether the model has the adapter that is asked for, if one is, and an endpoint that the tenant
// may use; `healthy`: one that nothing speaks against at present.
bool Core::servable(model::ModelId model, const Request& request, bool healthy) const {
  const auto found = pools_of_model_.find(model);
  if (found == pools_of_model_.end()) return false;
  if (request.arrived.lora != 0) {
    const auto loras = loras_of_model_.find(model);
    if (loras == loras_of_model_.end() || !loras->second.contains(request.arrived.lora)) {
      return false;
    }
  }
  const model::TenantId tenant = request.arrived.tenant;
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
// is down as far as one knows serves only where nobody else is left. 0: nobody.
model::ModelId Core::choose_model(const Request& request) {
  const model::Route* route = find_route(*fleet_, request.arrived.route);
  if (route == nullptr) return {};
  const bool choice = route->targets.size() + route->fallback.size() > 1;
  if (!choice) {
    const bool serves = !route->targets.empty() && servable(route->targets[0].model);
    return serves ? route->targets[0].model : model::ModelId{};
  }
  const double draw = route->targets.size() > 1 ? route_rng_.uniform() : 0;
  for (const bool healthy : {true, false}) {
    if (const model::ModelId target = draw_target(request, *route, draw, healthy)) return target;
    for (const model::ModelId fallback : route->fallback) {
      if (servable(fallback, request, healthy)) return fallback;
    }
  }
  return {};
}

model::ModelId Core::draw_target(const Request& request, const model::Route& route, double draw,
                                 bool healthy) const {
  double total = 0;
  for (const model::Target& target : route.targets) {
    if (servable(target.model, request, healthy)) total += target.weight;
  }
  double left = draw * total;
  model::ModelId last;
  for (const model::Target& target : route.targets) {
    if (target.weight <= 0 || !servable(target.model, request, healthy)) continue;
    last = target.model;
    if (left < target.weight) break;
    left -= target.weight;
  }
  return last;
}

// The model of its route to try after the present one: the other targets in their order, then the
// fallbacks; those that nothing speaks against first. 0: none is left.
model::ModelId Core::next_model(const Request& request) const {
  const model::Route* route = find_route(*fleet_, request.arrived.route);
  if (route == nullptr) return {};
  const auto usable = [&](model::ModelId model, bool healthy) {
    return model != request.model && servable(model, request, healthy) &&
           std::ranges::find(request.models_tried, model) == request.models_tried.end();
  };
  for (const bool healthy : {true, false}) {
    for (const model::Target& target : route->targets) {
      if (target.weight > 0 && usable(target.model, healthy)) return target.model;
    }
    for (const model::ModelId fallback : route->fallback) {
      if (usable(fallback, healthy)) return fallback;
    }
  }
  return {};
}

// Where all engines of its model are down, or it waits for a fallback while a target is up, another
// model of its route may have a place that nobody waits for. Who finds none stays: its own may be
// back sooner. True: it was sent.
bool Core::goes_over(Request& request, Instant now, Actions& out) {
  const model::Route* route = find_route(*fleet_, request.arrived.route);
  if (route == nullptr || route->targets.size() + route->fallback.size() < 2) return false;
  const model::ModelId own = request.model;
  const bool down = !servable(own, request, true);
  const bool target = std::ranges::any_of(
      route->targets, [&](const model::Target& t) { return t.model == own && t.weight > 0; });
  if (!down && target) return false;
  let_go(request, now);
  const auto sent = [&](model::ModelId other) {
    if (other == own || !queue_.empty(other) || !servable(other, request, true)) return false;
    bind(request, other);
    if (place(request, now, out) == Placed::Sent) return true;
    let_go(request, now);
    bind(request, own);
    return false;
  };
  const bool gone =
      std::ranges::any_of(route->targets,
                          [&](const model::Target& t) { return t.weight > 0 && sent(t.model); }) ||
      (down && std::ranges::any_of(route->fallback, sent));
  if (!gone) {
    want_over_.insert(own);
    return false;
  }
  queue_.remove(own, request.arrived.request);
  request.waiting = false;
  return true;
}

// Two models share no cache: the chain, which was folded before the target was chosen, is bound to
// it by a constant that keeps equal prefixes equal, and can be bound anew.
void Core::bind(Request& request, model::ModelId model) const {
  const auto key = [](model::ModelId id) {
    return id ? mixed(id.value() + 0x9E3779B97F4A7C15ull) : 0;
  };
  const std::uint64_t change = key(request.model) ^ key(model);
  for (model::PromptNode& node : request.arrived.prompt.chain) node.hash ^= change;
  request.model = model;
}

}  // namespace signalbox::flow
