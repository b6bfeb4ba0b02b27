// SPDX-License-Identifier: Apache-2.0
// The one list of fields of every event, action and noun of the fleet. A field function takes any
// visitor that offers `v(field)...`; the encoder and the decoder are such visitors, so that they
// cannot disagree.
#pragma once

#include "core/model/action.h"
#include "core/model/event.h"
#include "core/model/fleet.h"

namespace signalbox::model {

// The last member of each enum that travels: what is beyond it is no value.
constexpr Api last(Api) { return Api::Responses; }
constexpr Script last(Script) { return Script::Code; }
constexpr AttemptResult last(AttemptResult) { return AttemptResult::Unfit; }
constexpr EngineKind last(EngineKind) { return EngineKind::OpenAi; }
constexpr Role last(Role) { return Role::Decode; }
constexpr DispatchMode last(DispatchMode) { return DispatchMode::Auto; }
constexpr Outcome last(Outcome) { return kOutcomes.back(); }
constexpr Conclude::Answer last(Conclude::Answer) { return Conclude::Answer::None; }

template <class V> void fields(V& v, PromptNode& x) { v(x.hash, x.bytes); }
template <class V> void fields(V& v, Prompt& x) { v(x.chain, x.bytes, x.script); }
template <class V> void fields(V& v, RequestArrived& x) {
  v(x.request, x.owner, x.tenant, x.route, x.api, x.stream, x.lora, x.body_bytes, x.output_max,
    x.choices, x.prompt);
}
template <class V> void fields(V& v, ClientGone& x) { v(x.request); }
template <class V> void fields(V& v, FirstToken& x) { v(x.request, x.attempt); }
template <class V> void fields(V& v, Usage& x) {
  v(x.prompt_tokens, x.cached_tokens, x.completion_tokens);
}
template <class V> void fields(V& v, EngineTimings& x) {
  v(x.queue, x.prefill, x.decode, x.prefill_tokens);
}
template <class V> void fields(V& v, AttemptEnded& x) {
  v(x.request, x.attempt, x.result, x.status, x.delivered, x.client_left, x.tokens,
    x.retry_after, x.usage, x.timings);
}
template <class V> void fields(V& v, Progress::Entry& x) { v(x.request, x.attempt, x.tokens); }
template <class V> void fields(V& v, Progress& x) { v(x.entries); }
template <class V> void fields(V& v, SumCount& x) { v(x.sum, x.count); }
template <class V> void fields(V& v, EngineState& x) {
  v(x.running, x.waiting, x.slots, x.kv_usage, x.kv_capacity_tokens, x.context_tokens,
    x.prompt_tokens_total, x.cached_tokens_total, x.generated_tokens_total, x.preemptions_total,
    x.prefill_seconds, x.prefill_tokens, x.queue_seconds, x.token_seconds, x.incarnation,
    x.asleep);
}
template <class V> void fields(V& v, EndpointObserved& x) { v(x.endpoint, x.state); }
template <class V> void fields(V& v, EndpointUnreachable& x) {
  v(x.endpoint);
  v(x.no_connection);
}
template <class V> void fields(V&, DrainOver&) {}
template <class V> void fields(V&, Tick&) {}

template <class V> void fields(V& v, Dispatch& x) {
  v(x.request, x.attempt, x.endpoint, x.decision, x.queued);
}
template <class V> void fields(V& v, Abort& x) { v(x.request, x.attempt); }
template <class V> void fields(V& v, Conclude& x) {
  v(x.request, x.attempt, x.outcome, x.answer, x.retry_after);
}

template <class V> void fields(V& v, Model& x) {
  v(x.id, x.name, x.profile, x.params_b, x.active_params_b, x.context_tokens, x.loras);
}
template <class V> void fields(V& v, Pool& x) {
  v(x.id, x.name, x.model, x.served_model, x.engine, x.role, x.accelerator, x.tensor_parallel,
    x.precision, x.usd_per_hour, x.concurrency_max, x.ejected_share_max, x.tenants,
    x.dispatch);
}
template <class V> void fields(V& v, Endpoint& x) {
  v(x.id, x.pool, x.address, x.rank, x.tls, x.serves, x.lists_loras, x.loras);
}
template <class V> void fields(V& v, Tenant& x) { v(x.id, x.name, x.concurrency_max); }
template <class V> void fields(V& v, Objective& x) {
  v(x.id, x.name, x.ttft, x.tpot, x.e2e, x.latency_weight, x.seconds_per_usd);
}
template <class V> void fields(V& v, Target& x) { v(x.model, x.weight); }
template <class V> void fields(V& v, Route& x) {
  v(x.id, x.name, x.targets, x.fallback, x.objective, x.tenants);
}
template <class V> void fields(V& v, Fleet& x) {
  v(x.models, x.pools, x.endpoints, x.tenants, x.objectives, x.routes);
}

}  // namespace signalbox::model
