// SPDX-License-Identifier: Apache-2.0
// Depart: ask routing for a place, send, or wait. A request waits only while every endpoint that
// could serve it is at its concurrency limit. First come, first served among those who could go to
// the same places: who waits for reasons of its own (an endpoint that failed it, an adapter, its
// size) holds up nobody else.
#include <algorithm>

#include "core/admission/retry_after.h"
#include "core/flow/core.h"

namespace signalbox::flow {
namespace {

using Answer = model::Conclude::Answer;

// Waiting requests that one event may find a place for, and those that it may pass over; the rest
// go at the next tick.
constexpr int kDrainSlice = 16;
constexpr int kPassOverSlice = 512;
constexpr int kLengthUses = 16;

// Whether endpoints may be open that only this request cannot use.
bool open_to_others(const routing::Decision& decision) {
  const auto refused = [&](routing::Reason reason) {
    return decision.refusals[static_cast<std::size_t>(reason)].count > 0;
  };
  return refused(routing::Reason::AlreadyTried) || refused(routing::Reason::Memory) ||
         refused(routing::Reason::Lora) || refused(routing::Reason::Tenant);
}

// Whether what keeps the one from a place keeps the other: but for their size, they could go to the
// same places.
bool could_go_alike(const Request& a, const Request& b) {
  return a.arrived.lora == b.arrived.lora && a.arrived.tenant == b.arrived.tenant &&
         a.tried == b.tried;
}

}  // namespace

const model::Objective* Core::objective(const Request& request) const {
  for (const model::Route& route : fleet_->routes) {
    if (route.id != request.arrived.route) continue;
    for (const model::Objective& objective : fleet_->objectives) {
      if (objective.id == route.objective) return &objective;
    }
  }
  return nullptr;
}

// Whether its prompt is computed there, and so is held afterwards.
bool Core::prefills(const Request& request) {
  return request.arrived.api != model::Api::CountTokens;
}

cache::Query Core::query(const Request& request) const {
  static const model::Prompt kNothing;
  return cache::query(request.model, prefills(request) ? request.arrived.prompt : kNothing);
}

// An estimate walks four quantile sketches; it moves slowly, so it is asked for anew only now and
// then.
double Core::output_mean(const perf::LengthKey& key, std::int64_t output_max) {
  const std::uint64_t hash = (key.tenant.value() * 0x9E3779B97F4A7C15ull) ^
                             (key.model.value() * 0xC2B2AE3D27D4EB4Full) ^
                             (key.route.value() * 0x165667B19E3779F9ull) ^
                             static_cast<std::uint64_t>(output_max) * 0xD6E8FEB86659FD93ull;
  KnownLength& known = known_lengths_[hash >> 54];
  if (known.hash != hash || known.uses_left-- == 0) {
    known = {hash, lengths_.estimate(key, output_max).mean, kLengthUses};
  }
  return known.mean;
}

// Sends it or lets it wait. Where its model has no place for it and no room to wait, the other
// models of its route are tried in turn.
Core::Placed Core::find_place(Request& request, Instant now, Actions& out) {
  for (;;) {
    // First come, first served: nobody overtakes those who wait already, unless all of them wait
    // for reasons of their own.
    // A retry was placed before them.
    const bool behind = request.attempts == 0 && !queue_.empty(request.model) &&
                        !apart_.contains(request.model);
    Placed placed = behind ? Placed::Waits : place(request, now, out);
    if (placed == Placed::Sent) return placed;
    if (placed != Placed::Nowhere) {
      const bool apart = (placed == Placed::WaitsApart || placed == Placed::Held) &&
                         (queue_.empty(request.model) || apart_.contains(request.model));
      if (enqueue(request, now)) {
        if (apart) apart_.insert(request.model);
        else apart_.erase(request.model);
        if (mode(request.held_for) == model::DispatchMode::Shuttle) {
          board(*pool_of(request.held_for), now, out);
        }
        return placed;
      }
      let_go(request, now);
      placed = Placed::QueueFull;
      if (DecisionRecord* record = behind ? nullptr : decisions_.find(request.decision)) {
        record->queue_full = true;
      }
    }
    const model::ModelId other = next_model(request);
    if (!other) return placed;
    request.models_tried.push_back(request.model);
    bind(request, other);
  }
}

// On its present model.
Core::Placed Core::place(Request& request, Instant now, Actions& out) {
  let_go(request, now);
  const auto pools = pools_of_model_.find(request.model);
  if (pools == pools_of_model_.end()) return Placed::Nowhere;
  decisions_.prepare();
  routing::Query q = ask(request, pools->second);
  routing::Decision decision = decide(q, now);
  const auto memory = static_cast<std::size_t>(routing::Reason::Memory);
  const auto full = static_cast<std::size_t>(routing::Reason::Full);
  const bool too_long =
      decision.kind == routing::Decision::Kind::None &&
      decision.refusals[memory].count + decision.refusals[full].count > 0;
  if (too_long) {
    // Our estimate of its length is no ground to refuse it: the engine counts, and says so.
    q.prompt_tokens = 1;
    q.output_mean = 1;
    q.match = nullptr;
    decision = decide(q, now);
  }
  ++totals_.decisions;
  totals_.candidates_evaluated += decision.evaluated;
  // Only places are left that have failed this very request.
  if (decision.retried) decision.kind = routing::Decision::Kind::None;
  switch (decision.kind) {
    case routing::Decision::Kind::Place:
      if (request.waiting && rests(decision.endpoint, now)) return Placed::Waits;
      if (!too_long && hold(request, decision, now)) return Placed::Held;
      dispatch(request, decision, load_.without_held(decision.candidates[decision.chosen]), now,
               out);
      return Placed::Sent;
    case routing::Decision::Kind::None:
      remember(request, decision, now);
      return Placed::Nowhere;
    case routing::Decision::Kind::Wait: break;
  }
  if (!request.waiting) request.decision = remember(request, decision, now).number;
  size_matters_ = decision.refusals[memory].count > 0;
  return open_to_others(decision) ? Placed::WaitsApart : Placed::Waits;
}

// Whether the endpoint has failed so recently that those who wait do better to wait on: engines
// that refuse would else empty a queue in no time.
bool Core::rests(model::EndpointId id, Instant now) {
  const Instant until = ejector_.rests_until(id, now);
  if (until <= now) return false;
  rest_over_at_ = std::min(rest_over_at_, until);
  return true;
}

// More than routing can keep count of would be beyond every endpoint's limit.
routing::Decision Core::decide(const routing::Query& q, Instant now) {
  if (!load_.full()) return routing::decide(load_, q, now, tie_rng_);
  routing::Decision wait;
  wait.kind = routing::Decision::Kind::Wait;
  wait.ask = load_.ask(q, now);
  return wait;
}

// What routing is asked about it. Good until the next look-up, which goes into match_.
routing::Query Core::ask(const Request& request, std::span<const model::PoolId> pools) {
  index_.lookup(query(request), match_);
  const model::RequestArrived& arrived = request.arrived;
  const perf::LengthKey key{arrived.tenant, request.model, arrived.route};

  routing::Query q;
  q.model = request.model;
  q.pools = pools;
  q.tenant = arrived.tenant;
  q.lora = arrived.lora;
  q.prompt_tokens = std::max<std::int64_t>(1, match_.prompt_tokens);
  q.match = &match_;
  const bool generates =
      arrived.api != model::Api::Embeddings && arrived.api != model::Api::CountTokens;
  q.output_mean = generates ? arrived.choices * output_mean(key, arrived.output_max) : 1;
  if (const model::Objective* o = objective(request)) {
    q.ttft = o->ttft;
    q.tpot = o->tpot;
    q.e2e = o->e2e;
    q.latency_weight = o->latency_weight;
    q.seconds_per_usd = o->seconds_per_usd;
  }
  q.tried = request.tried;
  q.ejected_allowed = true;
  return q;
}

// So that it can be explained. Without a place the attempt stays 0.
DecisionRecord& Core::remember(const Request& request, const routing::Decision& decision,
                               Instant now) {
  DecisionRecord& record = decisions_.add(decision);
  record.request = request.arrived.request;
  record.route = request.arrived.route;
  record.model = request.model;
  record.tenant = request.arrived.tenant;
  record.at = now;
  record.queued = request.waiting ? now - request.waiting_since : Duration::zero();
  record.queue_full = false;
  record.held = model::DispatchMode::Immediate;
  record.boarded = 0;
  record.pass_seconds = 0;
  record.ttft_predicted = record.e2e_predicted = 0;
  record.stretch = 1;
  record.cached_predicted = 0;
  return record;
}

// `chosen`: what is known of the place without those held for it, who are not ahead.
void Core::dispatch(Request& request, const routing::Decision& decision,
                    const routing::Inputs& chosen, Instant now, Actions& out) {
  const model::RequestId id = request.arrived.request;
  const routing::Terms terms = routing::score(decision.ask, chosen);

  request.attempt = model::AttemptId(request.attempt.value() + 1);
  request.endpoint = decision.endpoint;
  request.pool = endpoints_.at(decision.endpoint).declared.pool;
  PoolState& pool = pools_.at(request.pool);
  request.attempt_grammar = {};
  request.sent = now;
  request.has_first_token = false;
  request.relayed_tokens = 0;
  request.was_idle = chosen.in_flight == 0;
  request.prompt_tokens = match_.prompt_tokens;
  request.cached_tokens = match_.cached_tokens(decision.endpoint);
  request.others_at_send = chosen.in_flight;
  request.decoding_at_send = chosen.decoding;
  request.kv_at_send = chosen.kv;
  request.ttft_predicted = terms.ttft;
  request.alone_due = now + from_seconds(terms.ttft);
  request.step_foreseen = terms.tpot;
  const double stretch = pool.stretch.median(request.others_at_send);
  request.e2e_predicted =
      terms.ttft + stretch * terms.tpot * static_cast<double>(decision.ask.output);
  request.sigma = chosen.uncertainty;
  request.kind = request.attempts++ == 0 ? recovery::RetryBudget::Kind::First
                                         : recovery::RetryBudget::Kind::Retry;
  pool.budget.started(request.kind);
  legal(request.grammar.take(model::RequestGrammar::Signal::Dispatched));
  legal(request.attempt_grammar.take(model::AttemptGrammar::Signal::Dispatched));
  endpoints_.at(decision.endpoint).grammar.take(model::EndpointGrammar::Signal::Dispatched);

  DecisionRecord& record = remember(request, decision, now);
  record.attempt = request.attempt;
  record.ttft_predicted = terms.ttft;
  record.e2e_predicted = request.e2e_predicted;
  record.stretch = stretch;
  record.cached_predicted = request.cached_tokens;
  request.decision = record.number;
  const Duration queued = record.queued;

  load_.dispatched(decision.endpoint, {id, request.attempt}, work(request, decision), now);
  const double seconds = terms.prefill + static_cast<double>(decision.ask.output * terms.tpot);
  ledger_.started(id, decision.endpoint, std::max(1e-6, seconds), now);
  request.pass = ejector_.dispatched(decision.endpoint);
  ejector_.tried(decision.endpoint, now);
  request.belief =
      index_.insert(decision.endpoint, query(request), cache::Residence::Pending);
  take_health_changes();
  out.push_back({request.arrived.owner, model::Dispatch{id, request.attempt, decision.endpoint,
                                                        request.decision, queued}});
}

bool Core::enqueue(Request& request, Instant since) {
  if (!queue_.push(request.model, request.arrived.request, request.arrived.body_bytes, since)) {
    return false;
  }
  request.waiting = request.has_waited = true;
  request.waiting_since = since;
  return true;
}

// Where the last slice ended, the next one goes on, so that many who wait apart hide nobody. Of
// those who wait for the same reasons one is looked at.
void Core::drain_queue(model::ModelId model, Instant now, Actions& out) {
  if (drain_over_) return;
  apart_.erase(model);
  may_move_.erase(model);
  alike_.clear();
  model::RequestId next = queue_.resume(model);
  for (int looked = 0, passed = 0; next;) {
    if (looked == kDrainSlice || passed == kPassOverSlice) {
      queue_.stop_at(next);
      may_move_.insert(model);
      return;
    }
    Request* request = find(next);
    CHECK(request != nullptr);
    next = queue_.next(next);
    if (std::ranges::any_of(
            alike_, [&](const Request* like) { return could_go_alike(*like, *request); })) {
      ++passed;
      continue;
    }
    ++looked;
    const Placed placed = place_waiting(*request, now, out);
    if (placed == Placed::Waits) return;
    if (placed == Placed::WaitsApart && !size_matters_) alike_.push_back(request);
  }
  if (!queue_.empty(model)) apart_.insert(model);
}

// Looks again for a place for one who waits, and takes it out of the queue if that is over.
Core::Placed Core::place_waiting(Request& request, Instant now, Actions& out) {
  const Placed placed = place(request, now, out);
  if (placed != Placed::Sent && placed != Placed::Nowhere) {
    return goes_over(request, now, out) ? Placed::Sent : placed;
  }
  queue_.remove(request.model, request.arrived.request);
  request.waiting = false;
  if (placed == Placed::Nowhere) lost_its_place(request, now, out);
  return placed;
}

// What it waited for is gone: another model of its route, or the end.
void Core::lost_its_place(Request& request, Instant now, Actions& out) {
  if (const model::ModelId other = next_model(request)) {
    request.models_tried.push_back(request.model);
    bind(request, other);
    const Placed placed = find_place(request, now, out);
    if (placed != Placed::Nowhere && placed != Placed::QueueFull) return;
  }
  if (request.attempts > 0) {
    conclude(request, model::Outcome::EngineUnreachable, Answer::Local, kUnreachableRetryAfter,
             out);
  } else {
    conclude(request, model::Outcome::NoEndpoint, Answer::Local, std::chrono::seconds(5), out);
  }
}

// When the queue of the model will have drained: what waits, over the pace at which attempts of the
// model end. Requests wait only while all its endpoints are full, so what runs now is what can run.
Duration Core::retry_after(model::ModelId model) const {
  const double running = std::max<double>(1, static_cast<double>(load_.in_flight(model)));
  const auto known = service_seconds_.find(model);
  const double seconds = known != service_seconds_.end() ? known->second : kServiceSeconds;
  const double work = static_cast<double>(queue_.size(model)) * seconds;
  return admission::retry_after(work, running);
}

}  // namespace signalbox::flow
