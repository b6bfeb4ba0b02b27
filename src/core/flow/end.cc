// SPDX-License-Identifier: Apache-2.0
// Account: an attempt or a request ends; what it teaches is learnt; every count goes back.
#include <algorithm>
#include <functional>
#include <utility>

#include "core/flow/core.h"

namespace signalbox::flow {
namespace {

using Answer = model::Conclude::Answer;

// Requests that are sent home in one event at the end of a drain.
constexpr std::size_t kLeavingSlice = 32;

}  // namespace

void Core::on(const model::ClientGone& event, Instant now, Actions& out) {
  Request* request = find(event.request);
  if (request == nullptr) {
    ++totals_.stale_events;
    return;
  }
  if (!legal(request->grammar.take(model::RequestGrammar::Signal::ClientGone))) return;
  const model::ModelId model = request->model;
  const model::EndpointId ran = request->endpoint;
  give_up(*request, now, out);
  conclude(*request, model::Outcome::ClientGone, Answer::None, Duration(-1), out);
  if (ran) open_up(ran, model, now, out);
}

// Something has ended at an endpoint: those who wait for its model may go.
void Core::open_up(model::EndpointId id, model::ModelId model, Instant now, Actions& out) {
  switch (mode(id)) {
    case model::DispatchMode::Immediate:
    case model::DispatchMode::Auto: drain_queue(model, now, out); break;
    case model::DispatchMode::Late: feed(id, now, out); break;
    case model::DispatchMode::Shuttle: board(*pool_of(id), now, out); break;
  }
  for (const model::ModelId other : std::exchange(want_over_, {})) drain_queue(other, now, out);
}

// Neither waits nor runs afterwards.
void Core::give_up(Request& request, Instant now, Actions& out) {
  const model::RequestId id = request.arrived.request;
  if (request.waiting) queue_.remove(request.model, id);
  request.waiting = false;
  let_go(request, now);
  if (!request.endpoint) return;
  out.push_back({request.arrived.owner, model::Abort{id, request.attempt}});
  legal(request.grammar.take(model::RequestGrammar::Signal::Aborted));
  if (!request.has_first_token) index_.withdraw(request.endpoint, query(request));
  model::AttemptEnded ended;
  ended.request = id;
  ended.attempt = request.attempt;
  ended.result = model::AttemptResult::Aborted;
  close_attempt(request, ended, now);
}

// Once in the life of a process, so the walk over all that are in flight holds up nobody who would
// still be served.
void Core::on(const model::DrainOver&, Instant now, Actions& out) {
  if (std::exchange(drain_over_, true)) {
    ++totals_.stale_events;
    return;
  }
  for (const auto& [id, request] : requests_) leaving_.push_back(id);
  std::sort(leaving_.begin(), leaving_.end(), std::greater<>());
  send_home(now, out);
}

void Core::send_home(Instant now, Actions& out) {
  for (std::size_t i = 0; i < kLeavingSlice && !leaving_.empty(); ++i) {
    Request* request = find(leaving_.back());
    leaving_.pop_back();
    if (request == nullptr) continue;
    give_up(*request, now, out);
    conclude(*request, model::Outcome::Draining, Answer::Local, kDrainRetryAfter, out);
  }
}

void Core::on(const model::AttemptEnded& event, Instant now, Actions& out) {
  Request* request = find(event.request);
  if (request == nullptr || request->attempt != event.attempt || !request->endpoint) {
    ++totals_.stale_events;
    return;
  }
  if (!legal(request->attempt_grammar.take(model::AttemptGrammar::Signal::Ended))) return;
  if (event.client_left) legal(request->grammar.take(model::RequestGrammar::Signal::ClientGone));
  legal(request->grammar.take(model::RequestGrammar::Signal::AttemptOver));
  const model::ModelId model = request->model;
  const model::EndpointId ran = request->endpoint;
  if (event.client_left) {
    finished_for_nobody(*request, event, now, out);
    return open_up(ran, model, now, out);
  }
  if (event.result == model::AttemptResult::Ok) succeeded(*request, event, now, out);
  else failed(*request, event, now, out);
  open_up(ran, model, now, out);
}

// What the engine has done, as far as seen, when it did not report it: nothing that one knows of
// before the first sign of an answer.
model::Usage Core::unreported(const Request& request, const model::AttemptEnded& event) const {
  const std::int64_t tokens = std::max(request.relayed_tokens, event.tokens);
  const bool answered =
      request.has_first_token || tokens > 0 || event.result == model::AttemptResult::Ok;
  if (!answered || !prefills(request) || event.usage.completion_tokens >= 0) return {};
  const bool told = event.usage.prompt_tokens >= 0;
  return {told ? -1 : request.prompt_tokens, -1, tokens};
}

// Gives back what the attempt held. Afterwards request.endpoint is none.
void Core::close_attempt(Request& request, const model::AttemptEnded& event, Instant now) {
  load_.ended({event.request, event.attempt}, now);
  ledger_.ended(event.request, prefills(request) ? event.usage : model::Usage{}, now,
                unreported(request, event));
  ejector_.ended(request.endpoint, request.pass, recovery::health(event.result), now);
  if (const auto pool = pools_.find(request.pool); pool != pools_.end()) {
    pool->second.budget.ended(request.kind);
  }
  if (DecisionRecord* record = decisions_.find(request.decision)) {
    record->over = true;
    record->result = event.result;
    record->e2e = now - request.sent;
    record->usage = event.usage;
  }
  if (PoolState* ranks = pool_of(request.endpoint); ranks && !ranks->instances.empty()) {
    const EndpointState& endpoint = endpoints_.at(request.endpoint);
    ranks->instances.at(endpoint.instance).gate.left(event.request, event.attempt);
  }
  price_trouble(request.endpoint, now);
  take_health_changes();
  request.endpoint = {};
}

// What an engine did after its client had left is work and teaches like any other.
void Core::finished_for_nobody(Request& request, const model::AttemptEnded& event, Instant now,
                               Actions& out) {
  if (event.result == model::AttemptResult::Ok) {
    learn(request, event, now);
    calibrate(request, event, now);
  } else if (!request.has_first_token) {
    index_.withdraw(request.endpoint, query(request));
  }
  close_attempt(request, event, now);
  conclude(request, model::Outcome::ClientGone, Answer::None, Duration(-1), out);
}

void Core::succeeded(Request& request, const model::AttemptEnded& event, Instant now,
                     Actions& out) {
  double& seconds = service_seconds_.try_emplace(request.model, kServiceSeconds).first->second;
  seconds += 0.02 * (to_seconds(now - request.sent) - seconds);
  learn(request, event, now);
  calibrate(request, event, now);
  close_attempt(request, event, now);
  conclude(request, model::Outcome::Completed, Answer::PassOn, Duration(-1), out);
}

// What the answer tells about the prompt's length, the engine's cache and the lengths of answers.
void Core::learn(Request& request, const model::AttemptEnded& event, Instant) {
  if (!prefills(request)) return;
  const cache::Query q = query(request);
  if (event.usage.prompt_tokens > 0) index_.learn(q, event.usage.prompt_tokens);
  if (event.usage.cached_tokens >= 0) {
    index_.observe_cached(request.endpoint, q, request.belief, event.usage.cached_tokens);
  }
  index_.insert(request.endpoint, q, cache::Residence::Held);
  if (event.usage.completion_tokens > 0) {
    lengths_.observe({request.arrived.tenant, request.model, request.arrived.route},
                     event.usage.completion_tokens / std::max(1, request.arrived.choices),
                     request.arrived.output_max);
  }
}

// Predicted against actual, and evidence for the pool's speed.
void Core::calibrate(Request& request, const model::AttemptEnded& event, Instant now) {
  const auto found = pools_.find(request.pool);
  if (found == pools_.end() || !prefills(request)) return;
  PoolState& pool = found->second;
  const model::RequestId id = request.arrived.request;
  const double ttft = to_seconds(request.first_token - request.sent);
  const auto record = [&](perf::Quantity quantity, double predicted, double actual) {
    pool.accuracy.record({id, request.endpoint, quantity, now, predicted, actual, request.sigma});
  };
  if (request.has_first_token) record(perf::Quantity::Ttft, request.ttft_predicted, ttft);
  record(perf::Quantity::E2e, request.e2e_predicted, to_seconds(now - request.sent));

  const std::int64_t generated = event.usage.completion_tokens;
  perf::Company company;
  company.decoding_before = request.decoding_at_send;
  company.decoding_kv_before = request.decoding_at_send > 0 ? request.kv_at_send : 0;
  company.batch = request.decoding_at_send + 1;
  company.kv = request.kv_at_send + static_cast<double>(request.prompt_tokens) +
               static_cast<double>(std::max<std::int64_t>(0, generated)) / 2;
  const EndpointState* endpoint = find(request.endpoint);
  if (request.has_first_token && endpoint != nullptr) {
    company.others_fresh = std::max(0.0, endpoint->fresh_done - request.fresh_at_first);
    company.others_attention =
        std::max(0.0, endpoint->attention_done - request.attention_at_first);
  }
  const bool alone = !pool.shares_passes();  // else see board.cc
  if (const auto prefill =
          perf::prefill_from(request.endpoint, event.timings, event.usage, company)) {
    if (alone) pool.calibrator->observe(*prefill, now);
  } else if (alone && request.was_idle && request.has_first_token &&
             event.usage.prompt_tokens > 0) {
    const auto cached = static_cast<double>(std::max<std::int64_t>(0, event.usage.cached_tokens));
    const auto fresh = static_cast<double>(event.usage.prompt_tokens) - cached;
    pool.calibrator->observe(perf::prefill_when_idle(request.endpoint, ttft, fresh, cached), now);
  }
  if (generated > 1) {
    watch_stretch(pool, request, event, now);
    model::EngineTimings timings = event.timings;
    perf::Witness witness = perf::Witness::Answer;
    if (timings.decode < Duration::zero() && request.has_first_token) {
      timings.decode = now - request.first_token;
      witness = perf::Witness::OwnClock;
    }
    if (auto decode = perf::decode_from(request.endpoint, timings, generated, company)) {
      decode->witness = witness;
      pool.calibrator->observe(*decode, now);
    }
  }
}

// Its own steps and whatever came between, against what was foreseen.
void Core::watch_stretch(PoolState& pool, const Request& request,
                         const model::AttemptEnded& event, Instant now) {
  const double foreseen =
      request.step_foreseen * static_cast<double>(event.usage.completion_tokens - 1);
  const Duration actual = request.has_first_token ? now - request.first_token
                                                  : event.timings.decode;
  if (foreseen > 0 && actual >= Duration::zero()) {
    pool.stretch.observe(request.others_at_send, foreseen, to_seconds(actual));
  }
}

void Core::conclude(Request& request, model::Outcome outcome, Answer answer, Duration retry_after,
                    Actions& out) {
  const model::RequestId id = request.arrived.request;
  CHECK(!request.endpoint);
  legal(request.grammar.take(model::RequestGrammar::Signal::Concluded));
  if (request.tenant_slot) caps_.release(request.arrived.tenant);
  ledger_.concluded(id, outcome, request.model);
  ++totals_.outcomes[static_cast<std::size_t>(outcome)];
  out.push_back({request.arrived.owner,
                 model::Conclude{id, request.attempt, outcome, answer, retry_after}});
  requests_.erase(id);
}

}  // namespace signalbox::flow
