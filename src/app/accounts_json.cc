// SPDX-License-Identifier: Apache-2.0
// Each section is read in one look, or one a pool, so that its rows and its sum are of one moment.
#include "app/accounts_json.h"

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/flow/flow.h"
#include "core/ledger/ledger.h"

namespace signalbox::app {
namespace {

using Json = nlohmann::ordered_json;
using ledger::Ledger;
using ledger::Totals;
using Rows = std::vector<std::pair<std::string, Totals>>;

constexpr const char* kOther = "(other)";

Json totals_json(const Totals& t) {
  Json outcomes = Json::object();
  for (const model::Outcome outcome : model::kOutcomes) {
    if (const auto n = t.count(outcome); n > 0) outcomes[std::string(model::label(outcome))] = n;
  }
  return {{"requests", t.ended()},           {"outcomes", outcomes},
          {"attempts", t.attempts},          {"prompt_tokens", t.prompt_tokens},
          {"cached_tokens", t.cached_tokens}, {"completion_tokens", t.completion_tokens},
          {"estimated_prompt_tokens", t.estimated_prompt_tokens},
          {"estimated_completion_tokens", t.estimated_completion_tokens},
          {"busy_seconds", to_seconds(t.busy.engine_time)},
          {"busy_usd", t.busy.usd()},        {"idle_seconds", to_seconds(t.idle.engine_time)},
          {"idle_usd", t.idle.usd()}};
}

// Rows of one name (an address that is in several pools) become one.
Json section(const Rows& rows) {
  std::map<std::string, Totals> sums;
  for (const auto& [name, totals] : rows) sums[name] += totals;
  Json out = Json::object();
  for (const auto& [name, totals] : sums) out[name] = totals_json(totals);
  return out;
}

// What the rows leave of `sum`.
void add_rest(Rows& rows, std::string name, Totals sum) {
  for (const auto& row : rows) sum -= row.second;
  if (sum != Totals{}) rows.emplace_back(std::move(name), sum);
}

template <typename List, typename Read>
Rows named(const host::CoreHost& host, const List& list, Read read) {
  Rows rows;
  Totals all;
  host.read([&](const flow::Flow& flow) {
    for (const auto& entry : list) rows.emplace_back(entry.name, read(flow.ledger(), entry.id));
    all = flow.ledger().all();
  });
  add_rest(rows, kOther, all);
  return rows;
}

// Clears what a section does not book; a remainder of nothing else is no row.
template <typename Clear>
Rows without(Rows rows, Clear clear) {
  for (auto& row : rows) clear(row.second);
  std::erase_if(rows,
                [](const auto& row) { return row.first == kOther && row.second == Totals{}; });
  return rows;
}

// Idle time belongs to endpoints and pools alone.
void clear_idle(Totals& totals) { totals.idle = {}; }
// Requests end under tenants and models alone: a request may have tried several endpoints.
void clear_outcomes(Totals& totals) { totals.outcomes = {}; }

Rows endpoint_rows(const host::CoreHost& host, const gateway::Published& published) {
  Rows rows;
  for (const model::Pool& pool : published.fleet->pools) {
    Rows here;
    Totals sum;
    host.read([&](const flow::Flow& flow) {
      for (const model::Endpoint& endpoint : published.fleet->endpoints) {
        if (endpoint.pool != pool.id) continue;
        const gateway::EndpointAccess* access = published.endpoint(endpoint.id);
        here.emplace_back(access != nullptr ? access->label : endpoint.address,
                          flow.ledger().endpoint(endpoint.id));
      }
      sum = flow.ledger().pool(pool.id);
    });
    add_rest(here, "(removed from " + pool.name + ")", sum);
    rows.insert(rows.end(), here.begin(), here.end());
  }
  return rows;
}

}  // namespace

Json accounts_json(const host::CoreHost& host, const gateway::Published& published) {
  const model::Fleet& fleet = *published.fleet;
  Json out;
  host.read([&](const flow::Flow& flow) {
    const Ledger& ledger = flow.ledger();
    out["all"] = totals_json(ledger.all());
    out["arrived"] = ledger.arrived();
    out["in_flight"] = ledger.in_flight();
    const ledger::Cost open = ledger.open();
    out["open"] = {{"seconds", to_seconds(open.engine_time)}, {"usd", open.usd()}};
  });
  out["tenants"] = section(without(
      named(host, fleet.tenants,
            [](const Ledger& l, model::TenantId id) { return l.tenant(id); }),
      clear_idle));
  out["models"] = section(without(
      named(host, fleet.models, [](const Ledger& l, model::ModelId id) { return l.model(id); }),
      clear_idle));
  const Rows pools = without(
      named(host, fleet.pools, [](const Ledger& l, model::PoolId id) { return l.pool(id); }),
      clear_outcomes);
  out["pools"] = section(pools);
  Rows endpoints = endpoint_rows(host, published);
  for (const auto& row : pools) {
    if (row.first == kOther) endpoints.push_back(row);  // of pools that were removed whole
  }
  out["endpoints"] = section(endpoints);
  return out;
}

}  // namespace signalbox::app
