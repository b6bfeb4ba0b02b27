// SPDX-License-Identifier: Apache-2.0
// What looks at engines tell: load of others, capacity, restarts, and histograms as evidence.
#include <algorithm>

#include "core/flow/core.h"

namespace signalbox::flow {

void Core::on(const model::EndpointObserved& event, Instant now, Actions& out) {
  EndpointState* endpoint = find(event.endpoint);
  if (endpoint == nullptr) {
    ++totals_.stale_events;
    return;
  }
  if (!legal(endpoint->grammar.take(model::EndpointGrammar::Signal::Observed))) return;
  PoolState& pool = pools_.at(endpoint->declared.pool);
  const model::EngineState& state = event.state;
  if (restarted(*endpoint, state)) {
    forget_cache(*endpoint);
    forget_failures(event.endpoint, pool, now);
  }
  endpoint->incarnation = state.incarnation;
  endpoint->generated_total = state.generated_tokens_total;
  endpoint->observed = true;
  endpoint->unreachable = false;
  connects(*endpoint, true);
  count_health(*endpoint);
  // Who has told its load, and now answers without, has not been seen well.
  const bool tells = state.running >= 0 || state.waiting >= 0 || state.kv_usage >= 0;
  endpoint->tells |= tells;
  if (tells || !endpoint->tells) endpoint->observed_at = now;
  endpoint->kv_usage = state.kv_usage;
  ledger_.settle(event.endpoint, now);  // else one that gets no request would never have been idle

  load_.observed(event.endpoint, state, now);
  if (state.slots > 0) endpoint->slots = state.slots;
  if (pool.declared.concurrency_max == 0 && state.slots > 0) {
    load_.set_limit(event.endpoint, state.slots);
  }
  if (state.kv_capacity_tokens > 0) {
    index_.set_capacity(event.endpoint, state.kv_capacity_tokens);
  }
  const routing::Load load = load_.load(event.endpoint, now);
  const double decoding = std::max(0, load.ours + load.others - load.queued);
  if (const auto delta = endpoint->histograms.observe(event.endpoint, state, decoding,
                                                      static_cast<double>(load.kv_tokens))) {
    if (!pool.shares_passes()) pool.calibrator->observe(delta->prefill, now);
  }
  watch_decoding(pool, *endpoint, state, load, now);
  drain_queue(pool.declared.model, now, out);
}

// Plain answers show no first token, so the engine's own token times between two looks speak for
// decoding. The batch is only known at the two ends: a weaker witness than an answer's timings.
void Core::watch_decoding(PoolState& pool, EndpointState& endpoint,
                          const model::EngineState& state, const routing::Load& load,
                          Instant now) {
  const model::SumCount before = endpoint.token_seconds;
  const double at_start = endpoint.decoding;
  endpoint.token_seconds = state.token_seconds;
  endpoint.decoding = state.running >= 0 ? state.running : load.ours + load.others - load.queued;
  const std::int64_t steps = state.token_seconds.count - before.count;
  const double seconds = state.token_seconds.sum - before.sum;
  if (before.count < 0 || steps < 8 || seconds <= 0) return;
  perf::DecodeEvidence evidence;
  evidence.endpoint = endpoint.declared.id;
  evidence.witness = perf::Witness::OwnClock;
  evidence.steps = static_cast<double>(steps);
  evidence.seconds = seconds;
  evidence.batch = std::max(1.0, (at_start + endpoint.decoding) / 2);
  evidence.kv = static_cast<double>(load.kv_tokens);
  pool.calibrator->observe(evidence, now);
}

void Core::on(const model::EndpointUnreachable& event, Instant now, Actions&) {
  EndpointState* endpoint = find(event.endpoint);
  if (endpoint == nullptr) {
    ++totals_.stale_events;
    return;
  }
  if (!legal(endpoint->grammar.take(model::EndpointGrammar::Signal::Unreachable))) return;
  ledger_.settle(event.endpoint, now);
  // A look that fails proves little: the last known state keeps serving, with wider uncertainty.
  endpoint->unreachable = true;
  if (event.no_connection) connects(*endpoint, false);
  count_health(*endpoint);
}

// A new incarnation, a counter that ran backwards, or an engine that tells neither and comes back
// after it could not be reached: its KV cache is empty.
bool Core::restarted(const EndpointState& endpoint, const model::EngineState& state) const {
  if (!endpoint.observed) return false;
  if (endpoint.incarnation != 0 && state.incarnation != 0) {
    return endpoint.incarnation != state.incarnation;
  }
  if (endpoint.generated_total > 0 && state.generated_tokens_total >= 0) {
    return state.generated_tokens_total < endpoint.generated_total;
  }
  return endpoint.unreachable;
}

// What failed was another process.
void Core::forget_failures(model::EndpointId id, const PoolState& pool, Instant now) {
  ejector_.remove(id);
  ejector_.add(id, pool.declared.id, pool.declared.ejected_share_max);
  count_health(endpoints_.at(id));
  tell_availability(endpoints_.at(id));
  price_trouble(id, now);
  take_health_changes();
}

void Core::forget_cache(EndpointState& endpoint) {
  if (!index_.clear_some(endpoint.declared.id, cache::PrefixIndex::kSlice)) {
    clearing_.push_back(endpoint.declared.id);
  }
  endpoint.histograms = {};
  endpoint.token_seconds = {};
}

}  // namespace signalbox::flow
