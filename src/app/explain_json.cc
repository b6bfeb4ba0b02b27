// SPDX-License-Identifier: Apache-2.0
// Every candidate with its inputs and terms, the runner-up, and what would have flipped the choice.
#include "app/explain_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/routing/explanation.h"

namespace signalbox::app {
namespace {

using Json = nlohmann::ordered_json;

std::string endpoint_label(const gateway::Published& published, model::EndpointId id) {
  const gateway::EndpointAccess* access = published.endpoint(id);
  return access != nullptr ? access->label : "endpoint " + std::to_string(id.value());
}

Json inputs_json(const routing::Inputs& i) {
  return {{"cached", i.cached},     {"reach", i.reach},         {"wait", i.wait},
          {"queued", i.queued},     {"kv_wait", i.kv_wait},     {"in_flight", i.in_flight},
          {"decoding", i.decoding}, {"kv", i.kv},               {"pass", i.pass},
          {"pass_wait", i.pass_wait},
          {"arrivals", i.arrivals}, {"overlap", i.overlap},
          {"usd_per_second", i.usd_per_second},
          {"uncertainty", i.uncertainty}, {"b", i.b},           {"c", i.c},
          {"d", i.d},               {"e1", i.e1},               {"e2", i.e2},
          {"f", i.f},               {"batch_break", i.batch_break}, {"chunk", i.chunk}};
}

Json terms_json(const routing::Terms& t) {
  return {{"reach", t.reach}, {"wait", t.wait}, {"own_prefill", t.own_prefill},
          {"passes", t.passes}, {"kv_wait", t.kv_wait}, {"own_decode", t.own_decode},
          {"imposed_stall", t.imposed_stall}, {"imposed_arrivals", t.imposed_arrivals},
          {"imposed_step", t.imposed_step}, {"shadow", t.shadow}, {"money", t.money},
          {"total", t.total}};
}

std::string_view label(routing::Decision::Kind kind) {
  switch (kind) {
    case routing::Decision::Kind::Place: return "place";
    case routing::Decision::Kind::Wait: return "wait";
    case routing::Decision::Kind::None: return "none";
  }
  return "none";
}

std::string_view label(routing::Field field) {
  switch (field) {
    case routing::Field::Cached: return "cached";
    case routing::Field::Wait: return "wait";
    case routing::Field::InFlight: return "in_flight";
  }
  return "cached";
}

std::string_view label(model::AttemptResult result) {
  using model::AttemptResult;
  switch (result) {
    case AttemptResult::Ok: return "ok";
    case AttemptResult::ClientError: return "client_error";
    case AttemptResult::Throttled: return "throttled";
    case AttemptResult::ServerError: return "server_error";
    case AttemptResult::ConnectError: return "connect_error";
    case AttemptResult::Reset: return "reset";
    case AttemptResult::Truncated: return "truncated";
    case AttemptResult::StreamError: return "stream_error";
    case AttemptResult::FirstTokenTimeout: return "first_token_timeout";
    case AttemptResult::IdleTimeout: return "idle_timeout";
    case AttemptResult::Aborted: return "aborted";
    case AttemptResult::Shortage: return "shortage";
    case AttemptResult::Overrun: return "overrun";
    case AttemptResult::Unfit: return "unfit";
  }
  return "ok";
}

void add_full(Json& out, const flow::DecisionRecord& record, const gateway::Published& published) {
  const routing::Explanation e = routing::explain(record.decision);
  out["ask"] = {{"prompt", e.ask.prompt}, {"output", e.ask.output},
                {"latency_weight", e.ask.latency_weight},
                {"seconds_per_usd", e.ask.seconds_per_usd}, {"shadow", e.ask.shadow},
                {"mean_b", e.ask.mean_b}, {"mean_c", e.ask.mean_c},
                {"ttft_max", e.ask.ttft_max}, {"tpot_max", e.ask.tpot_max},
                {"e2e_max", e.ask.e2e_max}, {"tie_band", e.ask.tie_band}};
  out["candidates"] = Json::array();
  for (const routing::Candidate& c : e.candidates) {
    out["candidates"].push_back({{"endpoint", endpoint_label(published, c.inputs.endpoint)},
                                 {"id", c.inputs.endpoint.value()},
                                 {"ttft", c.terms.ttft}, {"tpot", c.terms.tpot},
                                 {"e2e", c.terms.e2e}, {"violation", c.terms.violation},
                                 {"terms", terms_json(c.terms)},
                                 {"inputs", inputs_json(c.inputs)}});
  }
  if (e.kind == routing::Decision::Kind::Place) out["chosen_index"] = e.chosen;
  if (e.runner_up) out["runner_up_index"] = *e.runner_up;
  out["drawn_from_near_ties"] = e.drawn;
  out["refused"] = Json::array();
  for (const routing::Refused& r : e.refused) {
    Json refused = {{"reason", std::string(routing::label(r.reason))},
                    {"count", r.refusals.count}};
    if (r.refusals.example) refused["example"] = endpoint_label(published, r.refusals.example);
    out["refused"].push_back(std::move(refused));
  }
  if (e.flip) {
    out["flip"] = {{"endpoint", endpoint_label(published, e.flip->endpoint)},
                   {"id", e.flip->endpoint.value()}, {"field", std::string(label(e.flip->field))},
                   {"from", e.flip->from}, {"to", e.flip->to}, {"relative", e.flip->relative}};
  }
  switch (record.held) {
    case model::DispatchMode::Immediate:
    case model::DispatchMode::Auto: break;
    case model::DispatchMode::Late:
      out["sentence"] = "it has a place and stays here until the engine there is about to run dry "
                        "(late binding)";
      return;
    case model::DispatchMode::Shuttle:
      out["sentence"] = "it has a place and stays here until an engine begins a pass that takes it "
                        "(shuttle)";
      return;
  }
  if (record.boarded > 0) {
    out["sentence"] = fmt::format(
        "it departed by shuttle: {} boarded this pass of the engine, which should take {:.2f} s; "
        "their places were planned over all who waited", record.boarded, record.pass_seconds);
    return;
  }
  if (record.queue_full) {
    out["sentence"] = "it may not wait: every endpoint that could serve it is full, and the queue "
                      "as well";
    return;
  }
  out["sentence"] = routing::sentence(
      e, [&published](model::EndpointId id) { return endpoint_label(published, id); });
}

}  // namespace

Json decision_json(const flow::DecisionRecord& record, const gateway::Published& published,
                   const gateway::RequestNames& names, Detail detail) {
  Json out;
  out["decision"] = record.number;
  out["request"] = names.known_as(record.request);
  out["engine_request"] = names.name(record.request);
  out["attempt"] = record.attempt.value();
  for (const model::Model& m : published.fleet->models) {
    if (m.id == record.model) out["model"] = m.name;
  }
  for (const model::Tenant& t : published.fleet->tenants) {
    if (t.id == record.tenant) out["tenant"] = t.name;
  }
  out["kind"] = record.queue_full ? "queue_full"
                : record.held != model::DispatchMode::Immediate
                    ? "held"
                    : std::string(label(record.decision.kind));
  if (record.attempt) out["endpoint"] = endpoint_label(published, record.decision.endpoint);
  else out["endpoint"] = nullptr;
  out["queued_ms"] = to_seconds(record.queued) * 1e3;
  out["evaluated"] = record.decision.evaluated;
  out["objective_missed"] = record.decision.objective_missed;
  Json predicted = {{"prompt_tokens", record.decision.ask.prompt},
                    {"output_tokens", record.decision.ask.output}};
  if (record.attempt) {
    predicted["ttft"] = record.ttft_predicted;
    predicted["e2e"] = record.e2e_predicted;
    predicted["stretch"] = record.stretch;
    predicted["cached_tokens"] = record.cached_predicted;
  }
  out["predicted"] = predicted;
  Json actual = Json::object();
  if (record.ttft >= Duration::zero()) actual["ttft"] = to_seconds(record.ttft);
  if (record.over) {
    actual["result"] = std::string(label(record.result));
    actual["e2e"] = to_seconds(record.e2e);
    if (record.usage.prompt_tokens >= 0) actual["prompt_tokens"] = record.usage.prompt_tokens;
    if (record.usage.cached_tokens >= 0) actual["cached_tokens"] = record.usage.cached_tokens;
    if (record.usage.completion_tokens >= 0) {
      actual["output_tokens"] = record.usage.completion_tokens;
    }
  }
  out["actual"] = actual;
  if (detail == Detail::Full) add_full(out, record, published);
  return out;
}

}  // namespace signalbox::app
