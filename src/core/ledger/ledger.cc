// SPDX-License-Identifier: Apache-2.0
// Books every end under each of its keys.
#include "core/ledger/ledger.h"

#include <algorithm>
#include <array>

#include "base/check.h"

namespace signalbox::ledger {
namespace {

const Totals kZeros{};

void book(Totals& totals, const model::Usage& usage, const model::Usage& estimate,
          const Cost& cost) {
  ++totals.attempts;
  totals.prompt_tokens += std::max<std::int64_t>(0, usage.prompt_tokens);
  totals.cached_tokens += std::max<std::int64_t>(0, usage.cached_tokens);
  totals.completion_tokens += std::max<std::int64_t>(0, usage.completion_tokens);
  totals.estimated_prompt_tokens += std::max<std::int64_t>(0, estimate.prompt_tokens);
  totals.estimated_completion_tokens += std::max<std::int64_t>(0, estimate.completion_tokens);
  totals.busy += cost;
}

}  // namespace

const Totals& Ledger::Table::at(std::size_t key) const {
  return key < rows_.size() ? rows_[key] : kZeros;
}

Totals& Ledger::Table::grow(std::size_t key, int keys_max) {
  if (key > static_cast<std::size_t>(keys_max)) key = 0;
  if (key >= rows_.size()) rows_.resize(key + 1);
  return rows_[key];
}

void Ledger::endpoint_added(model::EndpointId endpoint, model::PoolId pool, model::ModelId model,
                            double usd_per_hour, Instant now) {
  const bool fresh =
      endpoints_.try_emplace(endpoint, Endpoint{Meter(now, usd_per_hour), pool, model, false, {}})
          .second;
  CHECK(fresh);
}

void Ledger::endpoint_changed(model::EndpointId endpoint, model::ModelId model,
                              double usd_per_hour, Instant now) {
  const auto at = endpoints_.find(endpoint);
  if (at == endpoints_.end()) return;
  advance(at->second, now);
  at->second.model = model;
  at->second.meter.set_price(usd_per_hour);
}

void Ledger::endpoint_removed(model::EndpointId endpoint, Instant now) {
  const auto at = endpoints_.find(endpoint);
  if (at == endpoints_.end()) return;
  advance(at->second, now);
  at->second.removed = true;
  if (at->second.meter.running() == 0) endpoints_.erase(at);
}

void Ledger::advance(Endpoint& endpoint, Instant now) {
  const Cost idle = endpoint.meter.advance(now);
  if (idle == Cost{}) return;
  endpoint.totals.idle += idle;
  pools_.grow(endpoint.pool.value(), config_.keys_max).idle += idle;
  all_.idle += idle;
}

void Ledger::settle(Instant now) {
  for (auto& [id, endpoint] : endpoints_) advance(endpoint, now);
}

void Ledger::settle(model::EndpointId endpoint, Instant now) {
  const auto at = endpoints_.find(endpoint);
  if (at != endpoints_.end()) advance(at->second, now);
}

void Ledger::arrived(model::RequestId request, model::TenantId tenant) {
  const bool fresh = requests_.try_emplace(request, Request{tenant, {}, {}, {}, {}}).second;
  CHECK(fresh);
  ++arrived_;
}

void Ledger::started(model::RequestId request, model::EndpointId endpoint, double weight,
                     Instant now) {
  const auto at = requests_.find(request);
  const auto on = endpoints_.find(endpoint);
  CHECK(at != requests_.end() && !at->second.endpoint && on != endpoints_.end());
  advance(on->second, now);
  at->second.endpoint = endpoint;
  at->second.model = on->second.model;
  at->second.running = on->second.meter.start(weight);
}

Cost Ledger::ended(model::RequestId request, const model::Usage& usage, Instant now,
                   const model::Usage& estimate) {
  const auto at = requests_.find(request);
  CHECK(at != requests_.end() && at->second.endpoint);
  Request& r = at->second;
  const auto on = endpoints_.find(r.endpoint);
  CHECK(on != endpoints_.end());
  Endpoint& endpoint = on->second;
  advance(endpoint, now);
  const Cost cost = endpoint.meter.end(r.running);
  const std::array<Totals*, 5> keys = {
      &all_, &endpoint.totals, &tenants_.grow(r.tenant.value(), config_.keys_max),
      &models_.grow(r.model.value(), config_.keys_max),
      &pools_.grow(endpoint.pool.value(), config_.keys_max)};
  for (Totals* totals : keys) book(*totals, usage, estimate, cost);
  r.endpoint = {};
  r.cost += cost;
  if (endpoint.removed && endpoint.meter.running() == 0) endpoints_.erase(on);
  return cost;
}

Cost Ledger::concluded(model::RequestId request, model::Outcome outcome, model::ModelId model) {
  const auto at = requests_.find(request);
  CHECK(at != requests_.end() && !at->second.endpoint);
  const auto column = static_cast<std::size_t>(outcome);
  ++all_.outcomes[column];
  ++tenants_.grow(at->second.tenant.value(), config_.keys_max).outcomes[column];
  ++models_.grow(model.value(), config_.keys_max).outcomes[column];
  const Cost cost = at->second.cost;
  requests_.erase(at);
  return cost;
}

const Totals& Ledger::endpoint(model::EndpointId id) const {
  const auto at = endpoints_.find(id);
  return at == endpoints_.end() ? kZeros : at->second.totals;
}

Cost Ledger::open(model::EndpointId id) const {
  const auto at = endpoints_.find(id);
  return at == endpoints_.end() ? Cost{} : at->second.meter.open();
}

Cost Ledger::open() const {
  Cost sum;
  for (const auto& [id, endpoint] : endpoints_) sum += endpoint.meter.open();
  return sum;
}

}  // namespace signalbox::ledger
