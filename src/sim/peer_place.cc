// SPDX-License-Identifier: Apache-2.0
// Where a request goes: who may be chosen, the rule's choice, the books, back-off and queue.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "sim/peer_decider.h"

namespace signalbox::sim {
namespace {

constexpr Duration kRefusedRetryAfter = std::chrono::seconds(1);

}  // namespace

// Drawn by weight among the targets that have endpoints; else the first fallback that has one.
model::ModelId PeerDecider::target(model::RouteId route) {
  const auto served = [&](model::ModelId model) {
    return std::any_of(slots_.begin(), slots_.end(),
                       [&](const auto& s) { return watches_[s.second].model == model; });
  };
  const auto found = std::find_if(fleet_->routes.begin(), fleet_->routes.end(),
                                  [&](const model::Route& r) { return r.id == route; });
  if (found == fleet_->routes.end()) return {};
  double sum = 0;
  for (const model::Target& t : found->targets) sum += served(t.model) ? t.weight : 0;
  double at = found->targets.size() > 1 ? route_rng_.uniform() * sum : 0;
  for (const model::Target& t : found->targets) {
    if (!served(t.model)) continue;
    at -= t.weight;
    if (at < 0) return t.model;
  }
  for (const model::ModelId model : found->fallback) {
    if (served(model)) return model;
  }
  return found->targets.front().model;
}

bool PeerDecider::left_out(const Watch& watch, Instant now) const {
  if (now < watch.open_until) return true;
  return traits_.unready_after > Duration::zero() && watch.unreachable_since != kNever &&
         now - watch.unreachable_since >= traits_.unready_after;
}

void PeerDecider::find_candidates(const Request& request, Instant now) {
  candidates_.clear();
  for (Slot slot = 0; slot < seen_.size(); ++slot) {
    const Watch& watch = watches_[slot];
    if (!seen_[slot].present || watch.model != request.model || left_out(watch, now)) continue;
    if (traits_.retry.avoids_tried && std::find(request.tried.begin(), request.tried.end(),
                                                watch.endpoint) != request.tried.end()) {
      continue;
    }
    candidates_.push_back(slot);
  }
}

PeerDecider::Placed PeerDecider::place(model::RequestId id, Request& request, Instant now,
                                       flow::Actions& out) {
  find_candidates(request, now);
  if (candidates_.empty()) {
    // A router that retries counts "nobody is there" as a try that failed.
    if (traits_.retry.on_failure && request.tries < traits_.retry.most) {
      ++request.tries;
      if (retry_later(id, request, now)) return Placed::Waits;
    }
    return Placed::Nowhere;
  }
  block_spans_.clear();
  for (const std::vector<peers::Piece>& chain : request.blocks) block_spans_.emplace_back(chain);
  peers::Query query;
  query.request = id.value();
  query.session = request.session;
  query.prompt = request.prompt;
  query.blocks = block_spans_;
  query.tokens = request.tokens;
  query.output_max = request.output_max;
  const peers::Choice choice = rule_->choose(query, candidates_, seen_, now, rng_);
  if (choice.kind == peers::Choice::Kind::Refuse) return Placed::Refused;
  if (choice.kind == peers::Choice::Kind::Wait) {
    if (!request.queued) queue_.push_back(id);
    request.queued = true;
    return Placed::Waits;
  }
  dispatch(id, request, query, choice, now, out);
  return Placed::Sent;
}

// Ends the request when it found no place.
void PeerDecider::settle(Placed placed, model::RequestId id, flow::Actions& out) {
  using Answer = model::Conclude::Answer;
  if (placed == Placed::Refused) {
    conclude(id, model::Outcome::QueueFull, Answer::Local, kRefusedRetryAfter, out);
  }
  if (placed == Placed::Nowhere) {
    conclude(id, model::Outcome::NoEndpoint, Answer::Local, Duration(-1), out);
  }
}

void PeerDecider::dispatch(model::RequestId id, Request& request, const peers::Query& query,
                           const peers::Choice& choice, Instant now, flow::Actions& out) {
  CHECK(choice.slot < seen_.size() && seen_[choice.slot].present);
  rule_->sent(query, choice, seen_, now);
  request.attempt = model::AttemptId(request.attempt.value() + 1);
  ++request.tries;
  request.slot = choice.slot;
  request.endpoint = watches_[choice.slot].endpoint;
  if (traits_.retry.avoids_tried) request.tried.push_back(request.endpoint);
  request.booked = request.prefilling = true;
  request.uncached = std::max<std::int64_t>(0, request.tokens - choice.cached);
  request.sent = now;
  request.first = kNever;
  ++seen_[choice.slot].in_flight;
  seen_[choice.slot].prefill_tokens += request.uncached;
  ++running_;
  model::Dispatch action;
  action.request = id;
  action.attempt = request.attempt;
  action.endpoint = request.endpoint;
  action.queued = now - request.arrived;
  out.push_back({request.owner, action});
}

// False: the next try is now.
bool PeerDecider::retry_later(model::RequestId id, Request& request, Instant now) {
  const peers::Retry& retry = traits_.retry;
  if (retry.first <= Duration::zero()) return false;
  double delay = to_seconds(retry.first);
  const double longest = to_seconds(retry.longest);
  for (int i = 1; i < request.tries && delay < longest; ++i) delay *= retry.factor;
  delay = std::min(delay, longest) * (1 + retry.jitter * route_rng_.uniform(-1, 1));
  request.retry_at = now + from_seconds(delay);
  retries_.emplace(request.retry_at, id);
  return true;
}

void PeerDecider::drain_queue(Instant now, flow::Actions& out) {
  if (!std::exchange(queue_moves_, false)) return;
  while (!queue_.empty()) {
    const model::RequestId id = queue_.front();
    Request& request = requests_.at(id);
    const Placed placed = place(id, request, now, out);
    if (placed == Placed::Waits && request.retry_at == kNever) return;
    queue_.pop_front();
    request.queued = false;
    settle(placed, id, out);
  }
}

peers::Flight PeerDecider::flight(model::RequestId id, const Request& request,
                                  std::int64_t output) const {
  return {id.value(),  request.slot, request.prompt, request.tokens, request.uncached,
          output,      request.sent, request.first};
}

void PeerDecider::prefilled(Request& request) {
  if (!std::exchange(request.prefilling, false)) return;
  seen_[request.slot].prefill_tokens -= request.uncached;
}

// The attempt is over, or its endpoint has left.
void PeerDecider::unbook(model::RequestId id, Request& request, std::int64_t output, Instant now) {
  if (std::exchange(request.booked, false)) {
    prefilled(request);
    --seen_[request.slot].in_flight;
    rule_->ended(flight(id, request, output), now);
    queue_moves_ = true;
  }
  request.endpoint = {};
  --running_;
}

void PeerDecider::judge(Slot slot, model::AttemptResult result, Instant now) {
  using model::AttemptResult;
  const peers::Breaker& breaker = traits_.breaker;
  if (breaker.failures == 0) return;
  Watch& watch = watches_[slot];
  const bool broken = result == AttemptResult::ConnectError || result == AttemptResult::Reset ||
                      result == AttemptResult::Truncated;
  const bool blameless = result == AttemptResult::Ok || result == AttemptResult::ClientError ||
                         result == AttemptResult::Aborted;
  if (breaker.broken_only ? !broken : blameless) {
    watch.failures = 0;
    if (watch.probation > 0) --watch.probation;
    return;
  }
  if (++watch.failures < breaker.failures && watch.probation == 0) return;
  watch.open_until = now + breaker.open;
  watch.probation = breaker.successes;
  watch.failures = 0;
}

}  // namespace signalbox::sim
