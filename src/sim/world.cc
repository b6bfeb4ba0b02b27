// SPDX-License-Identifier: Apache-2.0
// The clock, the door of the core, and what is late on the way to it.
#include "sim/world.h"

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include "sim/flow_decider.h"
#include "sim/peer_decider.h"
#include "sim/peers/registry.h"

namespace signalbox::sim {
namespace {

// Looks at engines go on for ever.
bool is_look(const model::Event& event) {
  return std::holds_alternative<model::EndpointObserved>(event) ||
         std::holds_alternative<model::EndpointUnreachable>(event);
}

constexpr std::string_view kOurs = "signalbox";
constexpr Duration kSentAgain = std::chrono::milliseconds(200);  // TCP's least time-out

std::unique_ptr<Decider> decider_of(const Scenario& scenario) {
  if (scenario.policy == kOurs) {
    return std::make_unique<FlowDecider>(scenario.config, scenario.seed);
  }
  const Result<peers::Peer> peer = peers::find(scenario.policy);
  CHECK(peer.has_value());
  return std::make_unique<PeerDecider>(peer->make(), scenario.seed);
}

}  // namespace

Report run(const Scenario& scenario) { return World(scenario).run(); }

World::World(const Scenario& scenario)
    : scenario_(scenario), rng_(scenario.seed, "world"), others_rng_(scenario.seed, "others"),
      sdk_rng_(scenario.seed, "sdk"), start_rng_(scenario.seed, "start"),
      load_(make_load(scenario.load, scenario.seed,
                      {routes(), {flow::lora_hash("adapter-1"), flow::lora_hash("adapter-2")},
                       context()})),
      checker_(scenario.seed, scenario.policy == kOurs),
      recorder_(scenario.config, scenario.seed, scenario.replay && scenario.policy == kOurs),
      decider_(decider_of(scenario)), senses_(decider_->senses()),
      thread_busy_until_(static_cast<std::size_t>(scenario.threads)) {}

Report World::run() {
  std::size_t number = 0;
  for (std::size_t group = 0; group < scenario_.groups.size(); ++group) {
    for (int i = 0; i < scenario_.groups[group].count; ++i) add_host(group, number++);
  }
  apply();
  for (int thread = 0; thread < scenario_.threads; ++thread) {
    at(now_ + scenario_.digest_interval, Due::Digest, static_cast<std::uint32_t>(thread));
  }
  await_arrival();
  if (scenario_.load.others_per_second > 0) at(now_, Due::Other);
  for (std::size_t i = 0; i < scenario_.faults.size(); ++i) {
    at(scenario_.faults[i].at, Due::FaultBegins, 0, i);
    ++faults_open_;
  }
  take_look();
  while (checker_.clean() && !at_rest()) {
    const EventQueue<What>::Item item = queue_.pop();
    now_ = item.at;
    if (now_ - Instant{} > scenario_.give_up) checker_.violated("the run does not end", now_);
    perform(item.what);
  }
  return report();
}

// Nobody comes any more, nobody waits, nothing is on its way.
bool World::at_rest() const {
  return coming() == kNever && clients_.empty() && tasks_.empty() && told_ == 0 &&
         late_actions_.empty() && flights_.empty() && faults_open_ == 0;
}

void World::perform(const What& w) {
  switch (w.due) {
    case Due::Arrive: return arrive(w.what);
    case Due::Retry: return ask_again(w.what, static_cast<int>(w.who));
    case Due::Press: return press(w.what);
    case Due::Leave: return leave(w.what);
    case Due::Timeout: return time_out(model::RequestId(w.what));
    case Due::Other: return other_request();
    case Due::Deliver: return deliver(w.what);
    case Due::Carry: {
      const model::OwnedAction action = late_actions_.at(w.what);
      late_actions_.erase(w.what);
      return carry_out(action.action);
    }
    case Due::Reach: return reach(w.what);
    case Due::Close: {
      Host& host = hosts_[w.who];
      // Sent again until it gets through.
      if (host.severed) return at(now_ + kSentAgain, Due::Close, w.who, w.what);
      catch_up(host);
      host.engine->abort(w.what, now_);
      tell_cache(w.who);
      return rearm(w.who);
    }
    case Due::Step: return step(w.who);
    case Due::Scrape: return scrape(w.who);
    case Due::Digest: return digest(w.who);
    case Due::Wake: return wake(w.what);
    case Due::Cache: {
      const std::vector<truth::CacheEvent> changes = std::move(cache_events_.at(w.what));
      cache_events_.erase(w.what);
      return decider_->cache_changed(model::EndpointId(w.who), changes);
    }
    case Due::Arrived: return kv_arrived(w.what, w.who);
    case Due::Started: return started(w.who, static_cast<truth::StartFrom>(w.what));
    case Due::Awake: hosts_[w.who].asleep = false; return;
    case Due::FaultBegins: return begin(scenario_.faults[w.what]);
    case Due::FaultEnds: return end(scenario_.faults[w.what]);
    case Due::Look: return take_look();
  }
}

void World::feed(model::Event&& event) {
  if (scenario_.check) checker_.event(event, now_);
  recorder_.event(event, now_);
  actions_.clear();
  decider_->handle(std::move(event), now_, actions_);
  follow_up(actions_);
}

void World::apply() {
  const flow::Setup next = setup();
  if (scenario_.check) checker_.applied(next, now_);
  recorder_.applied(next, now_);
  actions_.clear();
  decider_->apply(next, now_, actions_);
  follow_up(actions_);
}

void World::follow_up(flow::Actions& actions) {
  recorder_.actions(actions);
  if (scenario_.check) {
    for (const model::OwnedAction& action : actions) checker_.action(action, now_);
    checker_.after(*decider_, now_);
  }
  for (const model::OwnedAction& action : actions) carry(action);
  arm_wake();
}

// Hands the event to the core after `delay`, or later, or twice.
void World::send(model::Event event, Duration delay, std::optional<LoadDetails> details) {
  const Disorder& disorder = scenario_.disorder;
  const auto park = [&](model::Event copy, Duration after) {
    if (!is_look(copy)) ++told_;
    events_.emplace(++parked_, Parked{std::move(copy), details});
    at(now_ + after, Due::Deliver, 0, parked_);
  };
  const auto late = [&] { return from_seconds(rng_.exponential(to_seconds(disorder.late_by))); };
  if (rng_.chance(disorder.duplicate)) park(event, delay + late());
  if (rng_.chance(disorder.late)) delay += late();
  park(std::move(event), delay);
}

void World::deliver(std::uint64_t parked) {
  Parked due = std::move(events_.at(parked));
  events_.erase(parked);
  if (!is_look(due.event)) --told_;
  if (due.details) {
    decider_->looked(std::get<model::EndpointObserved>(due.event).endpoint, *due.details);
  }
  feed(std::move(due.event));
}

// The timer of the server: it may be late, and is set anew when the core wants an earlier one.
void World::arm_wake() {
  const Instant wanted = decider_->next_wake();
  if (wanted >= wake_at_) return;
  wake_at_ = wanted;
  const double late = rng_.uniform() * to_seconds(scenario_.disorder.timer_late);
  at(std::max(now_, wanted) + std::chrono::microseconds(1) + from_seconds(late), Due::Wake, 0,
     ++arming_);
}

void World::wake(std::uint64_t arming) {
  if (arming != arming_) return;
  wake_at_ = kNever;
  if (decider_->next_wake() <= now_) return feed(model::Tick{});
  arm_wake();
}

}  // namespace signalbox::sim
