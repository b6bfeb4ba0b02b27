// SPDX-License-Identifier: Apache-2.0
// The core's figures at each scrape.
#include "app/explain_json.h"
#include "core/flow/flow.h"
#include "io/net/clock.h"

namespace signalbox::app {
namespace {

using telemetry::MetricType;
using telemetry::TextWriter;

struct Row {
  std::string endpoint;
  std::string pool;
  flow::EndpointView view;
};

void write_totals(TextWriter& w, const flow::Totals& totals) {
  const auto count = [&](std::string_view name, std::string_view help, std::uint64_t value) {
    w.family(name, MetricType::Counter, help);
    w.sample({}, static_cast<double>(value));
  };
  const auto gauge = [&](std::string_view name, std::string_view help, std::uint64_t value) {
    w.family(name, MetricType::Gauge, help);
    w.sample({}, static_cast<double>(value));
  };
  gauge("signalbox_in_flight_requests", "Requests known and not ended.", totals.in_flight);
  gauge("signalbox_waiting_requests", "Requests that wait for an endpoint.", totals.waiting);
  gauge("signalbox_waiting_bytes", "Bodies of waiting requests.", totals.waiting_bytes);
  count("signalbox_retries_total", "Attempts at another endpoint.", totals.retries);
  count("signalbox_decisions_total", "Placements decided, anew for who waited.", totals.decisions);
  count("signalbox_candidates_evaluated_total", "Places scored for placements.",
        totals.candidates_evaluated);
  count("signalbox_stale_events_total", "Events that came too late.", totals.stale_events);
  count("signalbox_illegal_events_total", "Events that the grammar forbids.",
        totals.illegal_events);
}

// Without the endpoints of which it is not known: a negative value.
template <typename Value>
void per_endpoint(TextWriter& w, const std::vector<Row>& rows, std::string_view name,
                  std::string_view help, Value value) {
  w.family(name, MetricType::Gauge, help);
  for (const Row& row : rows) {
    const auto known = static_cast<double>(value(row.view));
    if (known >= 0) w.sample({{"pool", row.pool}, {"endpoint", row.endpoint}}, known);
  }
}

void write_errors(TextWriter& w, const std::vector<std::pair<std::string, perf::Accuracy>>& pools) {
  w.family("signalbox_prediction_error_ratio", MetricType::Gauge,
           "Median of |log(actual / predicted)|, decayed.");
  for (const auto& [pool, accuracy] : pools) {
    w.sample({{"pool", pool}, {"quantity", "ttft"}},
             accuracy.summary(perf::Quantity::Ttft).median_error);
    w.sample({{"pool", pool}, {"quantity", "e2e"}},
             accuracy.summary(perf::Quantity::E2e).median_error);
  }
}

}  // namespace

void collect_core_metrics(TextWriter& w, host::CoreHost& host,
                          const gateway::Published& published) {
  flow::Totals totals;
  cache::Stats cache;
  host.read([&](const flow::Flow& flow) {
    totals = flow.totals();
    cache = flow.cache_stats();
  });
  write_totals(w, totals);
  w.family("signalbox_prefix_index_bytes", MetricType::Gauge, "Memory of the prefix index.");
  w.sample({}, static_cast<double>(cache.bytes));
  w.family("signalbox_prefix_index_nodes", MetricType::Gauge, "Nodes of the prefix index.");
  w.sample({}, static_cast<double>(cache.nodes));

  std::vector<Row> rows;
  std::vector<std::pair<std::string, perf::Accuracy>> accuracies;
  std::vector<std::pair<std::string, flow::DispatchView>> shuttles;
  for (const model::Pool& pool : published.fleet->pools) {
    std::vector<flow::EndpointView> views;
    host.read([&](const flow::Flow& flow) {
      views = flow.endpoints(pool.id, net::now());
      if (const auto* a = flow.accuracy(pool.id)) accuracies.emplace_back(pool.name, *a);
      const flow::DispatchView dispatch = flow.dispatch(pool.id);
      if (dispatch.mode == model::DispatchMode::Shuttle) {
        shuttles.emplace_back(pool.name, dispatch);
      }
    });
    for (flow::EndpointView& view : views) {
      const gateway::EndpointAccess* access = published.endpoint(view.id);
      if (access != nullptr) rows.push_back({access->label, pool.name, view});
    }
  }
  using View = flow::EndpointView;
  per_endpoint(w, rows, "signalbox_endpoint_in_flight_requests", "Requests of ours there.",
               [](const View& v) { return v.load.ours; });
  per_endpoint(w, rows, "signalbox_endpoint_held_requests",
               "Of these, those that stay here until it wants more.",
               [](const View& v) { return v.load.held; });
  per_endpoint(w, rows, "signalbox_endpoint_others_requests", "Requests of others there.",
               [](const View& v) { return v.load.others; });
  per_endpoint(w, rows, "signalbox_endpoint_wait_seconds", "Prefill work that waits there.",
               [](const View& v) { return v.load.wait_seconds; });
  per_endpoint(w, rows, "signalbox_endpoint_kv_usage_ratio",
               "KV cache in use, of those that say so.", [](const View& v) { return v.kv_usage; });
  per_endpoint(w, rows, "signalbox_endpoint_speed_ratio", "Its times against its pool's.",
               [](const View& v) { return v.factor; });
  per_endpoint(w, rows, "signalbox_endpoint_in_service", "1: in service, 0: ejected.",
               [](const View& v) { return v.standing == recovery::Standing::In ? 1 : 0; });
  per_endpoint(w, rows, "signalbox_endpoint_observed_age_seconds",
               "Since the last good look; before the first one, since it was declared.",
               [](const View& v) { return to_seconds(v.since_observed); });
  write_errors(w, accuracies);
  w.family("signalbox_pool_pass_seconds", MetricType::Gauge,
           "Mean length of a pass over an engine's ranks, where requests depart by shuttle.");
  for (const auto& [pool, view] : shuttles) w.sample({{"pool", pool}}, to_seconds(view.pass));
  w.family("signalbox_pool_window_seconds", MetricType::Gauge,
           "Mean time between the departures of two engines, where requests depart by shuttle.");
  for (const auto& [pool, view] : shuttles) w.sample({{"pool", pool}}, to_seconds(view.window));
}

}  // namespace signalbox::app
