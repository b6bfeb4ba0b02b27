// SPDX-License-Identifier: Apache-2.0
// The books: every request ends in exactly one outcome, and every second of an endpoint that is
// paid for belongs to a request or is idle. Under the core's lock. Keeps INV-1 (arrived = ended +
// in flight) and INV-4 (Σ requests = Σ tenants = Σ models = Σ pools = Σ endpoints; with what is
// open and idle = elapsed × price, exactly).
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "base/time.h"
#include "core/ledger/config.h"
#include "core/ledger/meter.h"
#include "core/ledger/totals.h"
#include "core/model/event.h"
#include "core/model/ids.h"
#include "core/model/outcome.h"

namespace signalbox::ledger {

class Ledger {
 public:
  explicit Ledger(const Config& config) : config_(config) {}

  // Paid for from now on. An id is never added twice.
  void endpoint_added(model::EndpointId endpoint, model::PoolId pool, model::ModelId model,
                      double usd_per_hour, Instant now);
  // Holds for attempts that start from now on; the price for all who run.
  void endpoint_changed(model::EndpointId endpoint, model::ModelId model, double usd_per_hour,
                        Instant now);
  // Paid for until now, or until the last request that runs there has ended. Its own totals go
  // then; those of its pool stay.
  void endpoint_removed(model::EndpointId endpoint, Instant now);

  // Once per request.
  void arrived(model::RequestId request, model::TenantId tenant);
  // An attempt runs on the endpoint. weight: its predicted work in seconds, > 0. A request runs on
  // one endpoint at a time.
  void started(model::RequestId request, model::EndpointId endpoint, double weight, Instant now);
  // The attempt that started last ended or was aborted. estimate: of what the engine did and did
  // not report. Returns the attempt's own cost.
  Cost ended(model::RequestId request, const model::Usage& usage, Instant now,
             const model::Usage& estimate = {});
  // Once per request, when no attempt runs. model: the one that was asked for; 0: none was found.
  // Returns the cost of all attempts.
  Cost concluded(model::RequestId request, model::Outcome outcome, model::ModelId model);

  // Accounts for idle time up to now on all endpoints; else that happens as requests come and go.
  void settle(Instant now);
  // The same for one; nothing for an unknown one.
  void settle(model::EndpointId endpoint, Instant now);

  const Totals& all() const { return all_; }
  // Zeros for unknown keys. Keys beyond Config::keys_max share the totals of key 0.
  const Totals& tenant(model::TenantId id) const { return tenants_.at(id.value()); }
  const Totals& model(model::ModelId id) const { return models_.at(id.value()); }
  const Totals& pool(model::PoolId id) const { return pools_.at(id.value()); }
  const Totals& endpoint(model::EndpointId id) const;
  // Time and money that requests still running on the endpoint have used so far.
  Cost open(model::EndpointId id) const;
  Cost open() const;

  std::uint64_t arrived() const { return arrived_; }
  std::size_t in_flight() const { return requests_.size(); }

 private:
  struct Endpoint {
    Meter meter;
    model::PoolId pool;
    model::ModelId model;
    bool removed = false;
    Totals totals;
  };
  struct Request {
    model::TenantId tenant;
    model::EndpointId endpoint;  // 0: no attempt runs
    model::ModelId model;        // of the endpoint when the attempt started
    Running running;
    Cost cost;
  };
  // Totals by dense id.
  class Table {
   public:
    const Totals& at(std::size_t key) const;
    Totals& grow(std::size_t key, int keys_max);

   private:
    std::vector<Totals> rows_{1};
  };

  void advance(Endpoint& endpoint, Instant now);

  Config config_;
  std::map<model::EndpointId, Endpoint> endpoints_;
  std::unordered_map<model::RequestId, Request> requests_;  // looked up, never walked
  Totals all_;
  Table tenants_;
  Table models_;
  Table pools_;
  std::uint64_t arrived_ = 0;
};

}  // namespace signalbox::ledger
