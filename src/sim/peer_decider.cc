// SPDX-License-Identifier: Apache-2.0
// Events come in; requests end.
#include "sim/peer_decider.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "core/recovery/retry.h"

namespace signalbox::sim {
namespace {

using model::AttemptResult;
using model::Outcome;
using Answer = model::Conclude::Answer;

// How a request ends whose attempt failed for good: as with us.
recovery::Decision end_of(const model::AttemptEnded& e) {
  return recovery::decide_retry({}, {e.result, e.status, e.delivered, 1, 1, false, false});
}

bool retries(const peers::Retry& retry, AttemptResult result) {
  switch (result) {
    case AttemptResult::ConnectError: return retry.on_connect_error;
    case AttemptResult::Reset:
    case AttemptResult::ServerError:
    case AttemptResult::Truncated:
    case AttemptResult::StreamError: return retry.on_failure;
    case AttemptResult::Throttled: return retry.on_throttled;
    default: return false;
  }
}

}  // namespace

PeerDecider::PeerDecider(std::unique_ptr<peers::Rule> rule, std::uint64_t seed)
    : rule_(std::move(rule)), traits_(rule_->traits()), rng_(seed, "peer"),
      route_rng_(seed, "peer-route") {}

Senses PeerDecider::senses() const {
  return {traits_.look_every, traits_.look_lag_max, traits_.load_details, traits_.cache_events};
}

Instant PeerDecider::next_wake() const {
  return retries_.empty() ? kNever : retries_.begin()->first;
}

flow::Totals PeerDecider::totals() const {
  flow::Totals totals = totals_;
  totals.in_flight = requests_.size();
  totals.waiting = requests_.size() - running_;
  return totals;
}

void PeerDecider::handle(model::Event&& event, Instant now, flow::Actions& out) {
  std::visit([&](const auto& e) { on(e, now, out); }, event);
  drain_queue(now, out);
}

void PeerDecider::on(const model::RequestArrived& event, Instant now, flow::Actions& out) {
  ++totals_.arrived;
  const auto prepared = asked_.find(event.request);
  CHECK(prepared != asked_.end());
  Request& request = requests_[event.request];
  request = std::move(prepared->second);
  asked_.erase(prepared);
  request.owner = event.owner;
  request.output_max = event.output_max;
  request.arrived = now;
  if (draining_) {
    return conclude(event.request, Outcome::Draining, Answer::Local, Duration(-1), out);
  }
  request.model = target(event.route);
  settle(place(event.request, request, now, out), event.request, out);
}

void PeerDecider::on(const model::ClientGone& event, Instant now, flow::Actions& out) {
  const auto found = requests_.find(event.request);
  if (found == requests_.end()) {
    ++totals_.stale_events;
    return;
  }
  abort(event.request, found->second, now, out);
  conclude(event.request, Outcome::ClientGone, Answer::None, Duration(-1), out);
}

void PeerDecider::on(const model::FirstToken& event, Instant now, flow::Actions&) {
  began(event.request, event.attempt, now);
}

// Answers that their clients want whole have no FirstToken here; who streams from engines in any
// case sees their tokens by the next digest.
void PeerDecider::on(const model::Progress& event, Instant now, flow::Actions&) {
  if (!traits_.sees_tokens) return;
  for (const model::Progress::Entry& entry : event.entries) {
    if (entry.tokens > 0) began(entry.request, entry.attempt, now);
  }
}

void PeerDecider::began(model::RequestId id, model::AttemptId attempt, Instant now) {
  const auto found = requests_.find(id);
  if (found == requests_.end() || found->second.attempt != attempt || !found->second.endpoint) {
    ++totals_.stale_events;
    return;
  }
  Request& request = found->second;
  if (request.first != kNever) return;
  request.first = now;
  if (!request.booked) return;
  prefilled(request);
  rule_->first_token(flight(id, request, 1), now);
  queue_moves_ = true;
}

void PeerDecider::on(const model::AttemptEnded& event, Instant now, flow::Actions& out) {
  const auto found = requests_.find(event.request);
  if (found == requests_.end() || found->second.attempt != event.attempt ||
      !found->second.endpoint) {
    ++totals_.stale_events;
    return;
  }
  Request& request = found->second;
  if (request.booked) judge(request.slot, event.result, now);
  unbook(event.request, request, event.tokens, now);
  if (event.client_left) {
    return conclude(event.request, Outcome::ClientGone, Answer::None, Duration(-1), out);
  }
  if (event.result == AttemptResult::Ok) {
    return conclude(event.request, Outcome::Completed, Answer::PassOn, Duration(-1), out);
  }
  failed(event.request, request, event, now, out);
}

void PeerDecider::failed(model::RequestId id, Request& request, const model::AttemptEnded& event,
                         Instant now, flow::Actions& out) {
  const bool again = !event.delivered && retries(traits_.retry, event.result) &&
                     request.tries <= traits_.retry.most;
  if (again) {
    if (retry_later(id, request, now)) return;
    const Placed placed = place(id, request, now, out);
    if (placed == Placed::Sent) ++totals_.retries;
    if (placed != Placed::Nowhere) return settle(placed, id, out);
  }
  const recovery::Decision end = end_of(event);
  conclude(id, end.outcome, end.answer, event.retry_after, out);
}

void PeerDecider::on(const model::EndpointObserved& event, Instant now, flow::Actions&) {
  const auto found = slots_.find(event.endpoint);
  if (found == slots_.end()) {
    ++totals_.stale_events;
    return;
  }
  const Slot slot = found->second;
  watches_[slot].unreachable_since = kNever;
  seen_[slot].looked = true;
  seen_[slot].looked_at = now;
  seen_[slot].state = event.state;
  rule_->looked(slot, seen_, now);
  queue_moves_ = true;
}

void PeerDecider::on(const model::EndpointUnreachable& event, Instant now, flow::Actions&) {
  const auto found = slots_.find(event.endpoint);
  if (found == slots_.end()) {
    ++totals_.stale_events;
    return;
  }
  Watch& watch = watches_[found->second];
  watch.unreachable_since = std::min(watch.unreachable_since, now);
}

void PeerDecider::on(const model::DrainOver&, Instant now, flow::Actions& out) {
  if (std::exchange(draining_, true)) {
    ++totals_.stale_events;
    return;
  }
  for (const model::RequestId id : in_order()) {
    abort(id, requests_.at(id), now, out);
    conclude(id, Outcome::Draining, Answer::Local, Duration(-1), out);
  }
}

void PeerDecider::on(const model::Tick&, Instant now, flow::Actions& out) {
  while (!retries_.empty() && retries_.begin()->first <= now) {
    const model::RequestId id = retries_.begin()->second;
    retries_.erase(retries_.begin());
    Request& request = requests_.at(id);
    request.retry_at = kNever;
    const Placed placed = place(id, request, now, out);
    if (placed == Placed::Sent) ++totals_.retries;
    settle(placed, id, out);
  }
}

void PeerDecider::abort(model::RequestId id, Request& request, Instant now, flow::Actions& out) {
  if (!request.endpoint) return;
  out.push_back({request.owner, model::Abort{id, request.attempt}});
  unbook(id, request, 0, now);
}

void PeerDecider::conclude(model::RequestId id, Outcome outcome, Answer answer,
                           Duration retry_after, flow::Actions& out) {
  const auto found = requests_.find(id);
  Request& request = found->second;
  CHECK(!request.endpoint);
  if (request.retry_at != kNever) retries_.erase({request.retry_at, id});
  if (request.queued) std::erase(queue_, id);
  model::Conclude action;
  action.request = id;
  if (answer == Answer::PassOn) action.attempt = request.attempt;
  action.outcome = outcome;
  action.answer = answer;
  action.retry_after = retry_after;
  ++totals_.outcomes[static_cast<std::size_t>(outcome)];
  out.push_back({request.owner, action});
  requests_.erase(found);
}

std::vector<model::RequestId> PeerDecider::in_order() const {
  std::vector<model::RequestId> ids;
  ids.reserve(requests_.size());
  for (const auto& [id, request] : requests_) ids.push_back(id);
  std::sort(ids.begin(), ids.end());
  return ids;
}

}  // namespace signalbox::sim
