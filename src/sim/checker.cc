// SPDX-License-Identifier: Apache-2.0
// Follows requests and attempts by itself and compares.
#include "sim/checker.h"

#include <algorithm>
#include <utility>

namespace signalbox::sim {
namespace {

constexpr std::uint64_t kFullEvery = 100;
// Requests may wait beside free places only as long as slices and late timers take.
constexpr Duration kStuck = std::chrono::seconds(2);

const model::Pool* find_pool(const model::Fleet& fleet, model::PoolId id) {
  const auto found = std::find_if(fleet.pools.begin(), fleet.pools.end(),
                                  [&](const model::Pool& p) { return p.id == id; });
  return found == fleet.pools.end() ? nullptr : &*found;
}

// One that does not say has all of them.
bool has_adapter(const model::Endpoint& endpoint, std::uint64_t lora) {
  return !endpoint.lists_loras ||
         std::any_of(endpoint.loras.begin(), endpoint.loras.end(),
                     [&](const std::string& name) { return flow::lora_hash(name) == lora; });
}

}  // namespace

void Checker::violated(const std::string& what, Instant now) {
  if (!violation_.empty()) return;
  violation_ = what + "\n  seed " + std::to_string(seed_) + ", " +
               std::to_string(to_seconds(now.time_since_epoch())) + " s, at: " +
               trail_.last_event() + "\n  before it, oldest first:\n" + trail_.text();
}

void Checker::applied(const flow::Setup& setup, Instant now) {
  fleet_ = setup.fleet;
  books_.applied(*fleet_, now);
  std::map<model::EndpointId, const model::Endpoint*> declared;
  for (const model::Endpoint& e : fleet_->endpoints) declared[e.id] = &e;
  for (const auto& [id, endpoint] : declared_) {
    if (!declared.contains(id)) grammar_.remove(id);
  }
  for (const auto& [id, endpoint] : declared) {
    if (!declared_.contains(id)) grammar_.declare(id);
  }
  declared_ = std::move(declared);
  ejection_ = std::max(ejection_, setup.config.recovery.ejection);
  held_longest_ = setup.config.dispatch.hold_max +
                  from_seconds(setup.config.dispatch.home_patience);
  if (in_flight_max_ == 0) in_flight_max_ = setup.config.routing.in_flight_max;
  queue_requests_max_ =
      std::max<std::int64_t>(queue_requests_max_, setup.config.admission.queue_requests_max);
  queue_bytes_max_ = std::max(queue_bytes_max_, setup.config.admission.queue_bytes_max.value);
  index_bytes_max_ = std::max(index_bytes_max_, setup.config.cache.index_bytes_max.value);
}

void Checker::event(const model::Event& event, Instant now) {
  trail_.note(now, event);
  if (grammar_.see(event) == model::Verdict::Illegal) violated("grammar: illegal event", now);
  if (const auto* arrived = std::get_if<model::RequestArrived>(&event)) take(*arrived, now);
  if (const auto* gone = std::get_if<model::ClientGone>(&event)) take(*gone);
  if (const auto* first = std::get_if<model::FirstToken>(&event)) take(*first, now);
  ended_.reset();
  if (const auto* ended = std::get_if<model::AttemptEnded>(&event)) take(*ended, now);
  if (const auto* looked = std::get_if<model::EndpointObserved>(&event)) {
    if (looked->state.asleep) asleep_.insert(looked->endpoint);
    else asleep_.erase(looked->endpoint);
  }
}

void Checker::take(const model::RequestArrived& e, Instant now) {
  ++arrived_;
  Open& open = open_[e.request];
  open.owner = e.owner;
  open.arrived = now;
  open.lora = e.lora;
}

void Checker::take(const model::ClientGone& e) {
  if (const auto at = open_.find(e.request); at != open_.end()) at->second.gone = true;
}

void Checker::take(const model::AttemptEnded& e, Instant now) {
  const auto at = open_.find(e.request);
  if (at == open_.end() || at->second.attempt != e.attempt || !at->second.endpoint) return;
  Open& open = at->second;
  open.delivered |= e.delivered;
  open.gone |= e.client_left;
  open.failed = e.result != model::AttemptResult::Ok;
  open.passes = !open.failed || e.status != 0;
  --running_[open.endpoint];
  take_failure(open.endpoint, e.result, now);
  books_.ended(open.endpoint, e.usage, open.sent, now);
  open.endpoint = {};
  ended_ = open;
}

void Checker::take(const model::FirstToken& e, Instant now) {
  const auto at = open_.find(e.request);
  if (at == open_.end() || at->second.attempt != e.attempt || !at->second.endpoint) return;
  if (!std::exchange(at->second.begun, true)) at->second.first = now;
  failing_.erase(at->second.endpoint);
}

void Checker::take_failure(model::EndpointId endpoint, model::AttemptResult result, Instant now) {
  using Result = model::AttemptResult;
  switch (result) {
    case Result::Ok: failing_.erase(endpoint); return;
    case Result::ClientError:
    case Result::Throttled:
    case Result::Aborted:
    case Result::Shortage:
    case Result::Overrun: return;
    default: break;
  }
  const auto [at, fresh] = failing_.try_emplace(endpoint, Row{now, now});
  if (now - at->second.last > ejection_) at->second.since = now;
  at->second.last = now;
}

// Who waits lets an endpoint that fails rest between trials, until it counts as down
// (docs/decisions/0012).
bool Checker::rests(model::EndpointId endpoint, Instant now) const {
  const auto at = failing_.find(endpoint);
  return at != failing_.end() && now - at->second.since <= ejection_;
}

void Checker::action(const model::OwnedAction& owned, Instant now) {
  trail_.note(now, owned.action);
  if (grammar_.see(owned.action) != model::Verdict::Legal) {
    violated("grammar: illegal action", now);
  }
  std::visit(
      [&](const auto& a) {
        const auto at = open_.find(a.request);
        if (at == open_.end()) return violated("INV-1: an action for a request that is over", now);
        if (owned.owner != at->second.owner) violated("an action for another owner", now);
        take(a, at->second, now);
      },
      owned.action);
}

void Checker::take(const model::Dispatch& a, Open& open, Instant now) {
  if (open.endpoint) violated("INV-2: a second attempt while one runs", now);
  if (open.delivered) violated("INV-2: another attempt after bytes went to the client", now);
  if (open.gone) violated("INV-2: an attempt for a client that left", now);
  const auto declared = declared_.find(a.endpoint);
  if (declared == declared_.end()) return violated("a dispatch to an endpoint that left", now);
  // Looks are few: a place that is taken and given back between two of them was not left idle.
  if (!open.attempt && open.lora == 0 && open.arrived < now) idle_capacity_since_ = kNever;
  open.attempt = a.attempt;
  open.endpoint = a.endpoint;
  open.decision = a.decision;
  open.failed = open.passes = open.begun = false;
  const int running = ++running_[a.endpoint];
  open.sent = now;
  books_.started(a.endpoint, now);
  const model::Endpoint& endpoint = *declared->second;
  const model::Pool* pool = find_pool(*fleet_, endpoint.pool);
  if (ours_ && !endpoint.serves) violated("a dispatch to an engine with other models", now);
  if (ours_ && open.lora != 0 && !has_adapter(endpoint, open.lora)) {
    violated("a dispatch to an engine without the adapter", now);
  }
  if (ours_ && pool->concurrency_max > 0 && running > pool->concurrency_max) {
    violated("INV-8: more requests on an endpoint than its limit", now);
  }
}

void Checker::take(const model::Abort&, Open& open, Instant now) {
  if (!open.endpoint) return violated("an abort where nothing runs", now);
  --running_[open.endpoint];
  books_.ended(open.endpoint, {}, open.sent, now);
  open.endpoint = {};
}

void Checker::take(const model::Conclude& a, Open& open, Instant now) {
  using Answer = model::Conclude::Answer;
  if (open.endpoint) violated("INV-2: concluded while an attempt runs", now);
  if ((a.answer == Answer::None) != open.gone) violated("an answer for nobody, or none", now);
  if (a.answer == Answer::PassOn && (a.attempt != open.attempt || !open.passes)) {
    violated("an answer to pass on that does not exist", now);
  }
  if (a.outcome == model::Outcome::Completed && open.failed) {
    violated("INV-1: a failed request was called completed", now);
  }
  if (a.outcome == model::Outcome::QueueFull && a.retry_after <= Duration::zero()) {
    violated("a full queue without Retry-After", now);
  }
  ++outcomes_[static_cast<std::size_t>(a.outcome)];
  open_.erase(a.request);
}

void Checker::after(const Decider& decider, Instant now) {
  check_counts(decider, now);
  const flow::Flow* core = decider.flow();
  if (core == nullptr) return;
  check_ledger(*core, now);
  if (ended_) check_story(*core, now);
  if (open_.empty()) check_rest(*core, now);
  if (++calls_ % kFullEvery != 0) return;
  if (auto wrong = books_.compare(core->ledger(), now)) violated(*wrong, now);
  check_flow_of_waiting(*core, now);
}

void Checker::check_counts(const Decider& decider, Instant now) {
  const flow::Totals totals = decider.totals();
  std::uint64_t ended = 0;
  for (const std::uint64_t n : outcomes_) ended += n;
  if (arrived_ != ended + open_.size()) violated("INV-1: arrived is not ended + open", now);
  if (totals.arrived != arrived_ || totals.outcomes != outcomes_ ||
      totals.in_flight != open_.size()) {
    violated("INV-1: the decider counts otherwise", now);
  }
  if (totals.illegal_events != 0) violated("grammar: the decider calls an event illegal", now);
  if (totals.waiting > totals.in_flight) violated("INV-1: more wait than there are", now);
}

void Checker::check_ledger(const flow::Flow& core, Instant now) {
  if (core.ledger().arrived() != arrived_ || core.ledger().in_flight() != open_.size() ||
      core.ledger().all().outcomes != outcomes_) {
    violated("INV-1: the ledger counts otherwise", now);
  }
  check_limits(core.totals(), core, now);
}

// What its decision keeps of an attempt is what was told of that attempt, and of no other.
void Checker::check_story(const flow::Flow& core, Instant now) {
  const flow::DecisionRecord* record = core.decisions().find(ended_->decision);
  if (record == nullptr || record->attempt != ended_->attempt) return;
  if (!record->over) violated("a decision whose attempt ended and is not over", now);
  const Duration ttft = ended_->begun ? ended_->first - ended_->sent : Duration(-1);
  if (std::max(record->ttft, Duration(-1)) != ttft) {
    violated("a decision with another first token than its attempt", now);
  }
}

void Checker::check_limits(const flow::Totals& totals, const flow::Flow& core, Instant now) {
  if (totals.waiting > static_cast<std::uint64_t>(queue_requests_max_) ||
      totals.waiting_bytes > static_cast<std::uint64_t>(queue_bytes_max_)) {
    violated("INV-8: the queue is beyond its limits", now);
  }
  if (calls_ % kFullEvery == 0 &&
      core.cache_stats().bytes > static_cast<std::size_t>(index_bytes_max_)) {
    violated("INV-8: the prefix index is beyond its limit", now);
  }
}

void Checker::check_rest(const flow::Flow& core, Instant now) {
  if (!core.idle() || core.in_flight() != 0) violated("INV-3: at rest, and not idle", now);
  if (core.ledger().open() != ledger::Cost{}) violated("INV-3: at rest, with open costs", now);
  const flow::Totals totals = core.totals();
  if (totals.waiting != 0 || totals.waiting_bytes != 0) {
    violated("INV-3: at rest, and room in the queue is taken", now);
  }
}

// Requests wait only while every endpoint that could serve them is full: with one pool, a free
// place and a request that nobody has failed yet do not go together. Where they depart late they
// may wait for the place that holds their prefix, but not while nobody at all is served.
void Checker::check_flow_of_waiting(const flow::Flow& core, Instant now) {
  const bool waits =
      fleet_->pools.size() == 1 && std::any_of(open_.begin(), open_.end(), [](const auto& entry) {
        return !entry.second.endpoint && !entry.second.attempt && entry.second.lora == 0;
      });
  bool room = false, served = false;
  std::int64_t in_flight = 0;
  if (waits) {
    for (const flow::EndpointView& view : core.endpoints(fleet_->pools.front().id, now)) {
      const bool open = view.standing == recovery::Standing::In ||
                        view.standing == recovery::Standing::ProbeReady;
      if (asleep_.contains(view.id) || view.no_connection || rests(view.id, now)) continue;
      room |= open && view.serves && view.load.ours + view.load.others < view.load.limit;
      served |= view.load.ours > view.load.held;
      in_flight += view.load.ours;
    }
  }
  if (waits && fleet_->pools.front().dispatch != model::DispatchMode::Immediate) room &= !served;
  room &= in_flight < in_flight_max_;
  if (!waits || !room) idle_capacity_since_ = kNever;
  else idle_capacity_since_ = std::min(idle_capacity_since_, now);
  // Where the settings say so, a shuttle holds a free engine, and a request its ticket, for longer.
  const bool shuttle = waits && (fleet_->pools.front().dispatch == model::DispatchMode::Shuttle ||
                                 fleet_->pools.front().dispatch == model::DispatchMode::Auto);
  const Duration stuck = kStuck + (shuttle ? held_longest_ : Duration::zero());
  if (waits && room && now - idle_capacity_since_ > stuck) {
    violated("INV-10: requests wait beside a free endpoint", now);
  }
}

void Checker::finish(const Decider& decider, Instant now) {
  calls_ = kFullEvery - 1;
  after(decider, now);
  if (!open_.empty()) violated("INV-1: requests without an end", now);
  for (const auto& [endpoint, running] : running_) {
    if (running != 0) violated("INV-3: attempts without an end", now);
  }
  if (decider.flow() != nullptr) finish_core(*decider.flow(), now);
}

void Checker::finish_core(const flow::Flow& core, Instant now) {
  for (const model::Pool& pool : fleet_->pools) {
    for (const flow::EndpointView& view : core.endpoints(pool.id, now)) {
      if (view.load.ours != 0 || view.load.queued != 0) {
        violated("INV-3: an endpoint with load at rest", now);
      }
      if (view.standing == recovery::Standing::Probing) {
        violated("INV-3: a probe without an end", now);
      }
    }
  }
}

}  // namespace signalbox::sim
