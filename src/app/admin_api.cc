// SPDX-License-Identifier: Apache-2.0
// Routes of the admin listener and the JSON of its answers.
#include "app/admin_api.h"

#include <charconv>
#include <nlohmann/json.hpp>

#include "app/accounts_json.h"
#include "app/explain_json.h"
#include "core/flow/flow.h"
#include "io/http/target.h"
#include "io/json/escape.h"
#include "io/net/clock.h"

namespace signalbox::app {
namespace {

using gateway::AdminAnswer;
using Json = nlohmann::ordered_json;

constexpr std::size_t kLimitMax = 1000;
// Requests of one name whose decisions are shown.
constexpr std::ptrdiff_t kSameNameMax = 16;

AdminAnswer not_found(std::string_view message) {
  return {404, "application/json", json::openai_error(message, "not_found")};
}

// Nothing when `limit` is there and is no number.
std::optional<std::size_t> limit_of(std::string_view query, std::size_t otherwise) {
  constexpr std::string_view kLimit = "limit=";
  for (std::string_view rest = query; !rest.empty();) {
    std::string_view pair = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(pair.size() + 1, rest.size()));
    if (!pair.starts_with(kLimit)) continue;
    pair.remove_prefix(kLimit.size());
    if (pair.empty() || pair.find_first_not_of("0123456789") != std::string_view::npos) {
      return std::nullopt;
    }
    std::size_t value = kLimitMax;
    std::from_chars(pair.data(), pair.data() + pair.size(), value);  // too large: as it was
    return std::min(value, kLimitMax);
  }
  return otherwise;
}

std::string_view label(recovery::Standing standing) {
  switch (standing) {
    case recovery::Standing::In: return "in";
    case recovery::Standing::Out: return "out";
    case recovery::Standing::ProbeReady: return "probe_ready";
    case recovery::Standing::Probing: return "probing";
  }
  return "in";
}

Json accuracy_json(const perf::Accuracy& accuracy) {
  Json out = Json::object();
  for (const auto& [name, quantity] :
       {std::pair{"ttft", perf::Quantity::Ttft}, std::pair{"e2e", perf::Quantity::E2e}}) {
    const perf::Accuracy::Summary s = accuracy.summary(quantity);
    out[name] = {{"count", s.count},   {"median_error", s.median_error},
                 {"p90_error", s.p90_error}, {"bias", s.bias}, {"coverage", s.coverage}};
  }
  return out;
}

Json coefficients_json(const perf::Coefficients& c) {
  return {{"a", c.a},   {"b", c.b},   {"c", c.c},   {"d", c.d},
          {"e1", c.e1}, {"e2", c.e2}, {"f", c.f},   {"batch_break", c.batch_break},
          {"chunk_tokens", c.chunk_tokens}, {"kv_capacity_tokens", c.kv_capacity_tokens},
          {"sequences_max", c.sequences_max}};
}

}  // namespace

AdminApi::AdminApi(host::CoreHost& host, const Controller& controller, gateway::Shared& shared,
                   telemetry::Registry& registry)
    : host_(host), controller_(controller), shared_(shared), registry_(registry) {
  registry_.collector([this](telemetry::TextWriter& writer) { collect(writer); });
}

AdminAnswer AdminApi::handle(const gateway::AdminRequest& request) const {
  const std::string_view path = request.path;
  if (request.method != http::Method::Get && request.method != http::Method::Head) {
    return {405, "application/json", json::openai_error("Only GET is served here.", "method")};
  }
  if (path == "/livez") return {200, "application/json", R"({"status":"ok"})"};
  if (path == "/readyz") {
    if (shared_.draining) return {503, "application/json", R"({"status":"draining"})"};
    if (!controller_.ready()) {
      return {503, "application/json", R"({"status":"no engine has been found yet"})"};
    }
    return {200, "application/json", R"({"status":"ok"})"};
  }
  if (path == "/metrics") {
    std::string page;
    registry_.write(page);
    return {200, "text/plain; version=0.0.4; charset=utf-8", std::move(page)};
  }
  if (path == "/v1/fleet") return {200, "application/json", fleet()};
  if (path == "/v1/profiles") return {200, "application/json", profiles()};
  if (path == "/v1/accounts") {
    return {200, "application/json", accounts_json(host_, *controller_.published()).dump()};
  }
  if (path == "/v1/config") {
    return {200, "application/yaml", spec::to_yaml(controller_.loaded().config)};
  }
  if (path == "/v1/decisions") {
    const auto limit = limit_of(request.query, 50);
    if (!limit) {
      return {400, "application/json",
              json::openai_error("'limit' is a number of decisions, such as limit=20.", "limit")};
    }
    return {200, "application/json", decisions(*limit)};
  }
  constexpr std::string_view kDecision = "/v1/decisions/";
  if (path.starts_with(kDecision)) return decision(path.substr(kDecision.size()));
  return not_found("Known paths: /metrics, /livez, /readyz, /v1/fleet, /v1/decisions, "
                   "/v1/decisions/{request-id}, /v1/config, /v1/profiles, /v1/accounts.");
}

std::string AdminApi::fleet() const {
  const auto published = controller_.published();
  Json out;
  flow::Totals totals;
  host_.read([&](const flow::Flow& flow) { totals = flow.totals(); });
  Json outcomes = Json::object();
  for (const model::Outcome outcome : model::kOutcomes) {
    outcomes[std::string(model::label(outcome))] =
        totals.outcomes[static_cast<std::size_t>(outcome)];
  }
  out["totals"] = {{"arrived", totals.arrived},     {"in_flight", totals.in_flight},
                   {"waiting", totals.waiting},     {"retries", totals.retries},
                   {"decisions", totals.decisions}, {"outcomes", outcomes},
                   {"candidates_evaluated", totals.candidates_evaluated},
                   {"stale_events", totals.stale_events},
                   {"illegal_events", totals.illegal_events}};
  out["models"] = Json::array();
  for (const auto& [name, access] : published->names) {
    out["models"].push_back({{"name", name}, {"context_tokens", access.context_tokens}});
  }
  out["pools"] = Json::array();
  for (const model::Pool& pool : published->fleet->pools) {
    std::vector<flow::EndpointView> views;
    Json accuracy;
    flow::DispatchView dispatch;
    // One pool a look: the lock is held for a moment only.
    host_.read([&](const flow::Flow& flow) {
      views = flow.endpoints(pool.id, net::now());
      if (const auto* a = flow.accuracy(pool.id)) accuracy = accuracy_json(*a);
      dispatch = flow.dispatch(pool.id);
    });
    Json entry = {{"name", pool.name}, {"engine", std::string(name(pool.engine))},
                  {"accelerator", pool.accelerator}, {"accuracy", accuracy}};
    for (const model::Model& m : published->fleet->models) {
      if (m.id == pool.model) entry["model"] = m.name;
    }
    entry["dispatch"] = {{"mode", std::string(name(dispatch.mode))}};
    if (dispatch.automatic) entry["dispatch"]["auto"] = true;
    if (dispatch.mode == model::DispatchMode::Shuttle) {
      entry["dispatch"]["instances"] = dispatch.instances;
      entry["dispatch"]["pass_seconds"] = to_seconds(dispatch.pass);
      entry["dispatch"]["window_seconds"] = to_seconds(dispatch.window);
    }
    entry["endpoints"] = Json::array();
    for (const flow::EndpointView& v : views) {
      const gateway::EndpointAccess* access = published->endpoint(v.id);
      entry["endpoints"].push_back(
          {{"id", v.id.value()}, {"address", access != nullptr ? access->label : ""},
           {"kind", access != nullptr ? std::string(name(access->kind)) : ""},
           {"ours", v.load.ours}, {"queued", v.load.queued}, {"held", v.load.held},
           {"others", v.load.others}, {"limit", v.load.limit},
           {"wait_seconds", v.load.wait_seconds},
           {"step_seconds", v.load.step_seconds}, {"arrivals_per_second", v.load.arrivals},
           {"kv_tokens", v.load.kv_tokens}, {"kv_capacity", v.load.kv_capacity},
           {"kv_usage", v.kv_usage < 0 ? Json() : Json(v.kv_usage)},
           {"cached_tokens", v.cached_tokens},
           {"factor", v.factor}, {"standing", std::string(label(v.standing))},
           {"failure_risk", v.failure_risk}, {"serves", v.serves}, {"observed", v.observed},
           {"unreachable", v.unreachable},
           {"since_observed_seconds", to_seconds(v.since_observed)}});
    }
    out["pools"].push_back(std::move(entry));
  }
  return out.dump();
}

std::string AdminApi::decisions(std::size_t count) const {
  const auto published = controller_.published();
  std::vector<flow::DecisionRecord> records;
  host_.read([&](const flow::Flow& flow) {
    // Two kilobytes a record: a short look copies few.
    for (const auto* record : flow.decisions().latest(std::min<std::size_t>(count, 64))) {
      records.push_back(*record);
    }
  });
  Json out = Json::array();
  for (const flow::DecisionRecord& record : records) {
    out.push_back(decision_json(record, *published, shared_.names, Detail::Summary));
  }
  return Json{{"decisions", out}}.dump();
}

AdminAnswer AdminApi::decision(std::string_view request_name) const {
  const auto decoded = http::percent_decode(request_name);
  std::vector<model::RequestId> ids;
  if (decoded) ids = shared_.names.find(*decoded);
  // The latest of a name that many requests have.
  if (std::ssize(ids) > kSameNameMax) ids.erase(ids.begin(), ids.end() - kSameNameMax);
  std::vector<flow::DecisionRecord> records;
  host_.read([&](const flow::Flow& flow) {
    for (const auto* record : flow.decisions().of(ids)) records.push_back(*record);
  });
  if (records.empty()) {
    return not_found("No decision of this request is remembered; see Gateway.limits."
                     "decisions_kept.");
  }
  const auto published = controller_.published();
  Json out = Json::array();
  for (const flow::DecisionRecord& record : records) {
    out.push_back(decision_json(record, *published, shared_.names, Detail::Full));
  }
  return {200, "application/json", Json{{"request", *decoded}, {"decisions", out}}.dump()};
}

std::string AdminApi::profiles() const {
  const auto published = controller_.published();
  Json out = Json::array();
  for (const model::Pool& pool : published->fleet->pools) {
    flow::PoolView view;
    Json accuracy;
    host_.read([&](const flow::Flow& flow) {
      view = flow.pool(pool.id);
      if (const auto* a = flow.accuracy(pool.id)) accuracy = accuracy_json(*a);
    });
    out.push_back({{"pool", pool.name},
                   {"prior", {{"origin", std::string(perf::name(view.prior_origin))},
                              {"source", view.prior_source},
                              {"coefficients", coefficients_json(view.prior)}}},
                   {"factors", {{"fixed", view.factors.fixed}, {"prefill", view.factors.prefill},
                                {"decode", view.factors.decode}}},
                   {"sigma", {{"fixed", view.sigma.fixed}, {"prefill", view.sigma.prefill},
                              {"decode", view.sigma.decode}}},
                   {"coefficients", coefficients_json(view.coefficients)},
                   {"prefill_observations", view.prefill_observations},
                   {"decode_observations", view.decode_observations},
                   {"accuracy", accuracy}});
  }
  return Json{{"profiles", out}}.dump();
}

void AdminApi::collect(telemetry::TextWriter& writer) const {
  const auto published = controller_.published();
  if (!published) return;
  collect_core_metrics(writer, host_, *published);
}

}  // namespace signalbox::app
