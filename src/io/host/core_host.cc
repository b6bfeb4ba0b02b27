// SPDX-License-Identifier: Apache-2.0
// Lock, stamp, handle, release, carry out.
#include "io/host/core_host.h"

#include <utility>

#include "base/check.h"
#include "io/net/clock.h"

namespace signalbox::host {

CoreHost::CoreHost(std::unique_ptr<flow::Flow> flow, EventSink* sink)
    : flow_(std::move(flow)), sink_(sink), wake_timer_([this] {
        armed_wake_.store(Instant::max().time_since_epoch().count());
        std::vector<model::Event> batch{model::Tick{}};
        hand_in(0, batch);
      }) {}

std::uint16_t CoreHost::add_owner(net::Loop& loop, Carrier carrier) {
  owners_.push_back({&loop, std::move(carrier)});
  return static_cast<std::uint16_t>(owners_.size() - 1);
}

void CoreHost::handle_locked(std::vector<model::Event>& batch, Instant now) {
  actions_.clear();
  for (model::Event& event : batch) {
    if (sink_ == nullptr) {
      flow_->handle(std::move(event), now, actions_);
      continue;
    }
    event_actions_.clear();
    const model::Event kept = event;
    flow_->handle(std::move(event), now, event_actions_);
    sink_->handled(kept, now, event_actions_);
    actions_.insert(actions_.end(), event_actions_.begin(), event_actions_.end());
  }
  batch.clear();
}

void CoreHost::route_locked(int caller, std::vector<model::Action>& own) {
  for (model::OwnedAction& owned : actions_) {
    if (owned.owner == caller) {
      own.push_back(std::move(owned.action));
      continue;
    }
    CHECK(owned.owner < owners_.size());
    Owner& owner = owners_[owned.owner];
    owner.loop->post([&owner, action = std::move(owned.action)] { owner.carrier(action); });
  }
}

void CoreHost::hand_in(std::uint16_t caller, std::vector<model::Event>& batch) {
  // Carrying out an action may give rise to events of the same turn (an engine refuses at once);
  // the caller hands those in with its next batch.
  thread_local std::vector<model::Action> own;
  std::vector<model::Action> actions = std::move(own);
  actions.clear();
  Instant wake = kNever;
  {
    const std::lock_guard lock(mutex_);
    handle_locked(batch, net::now());
    route_locked(caller, actions);
    wake = flow_->next_wake();
  }
  post_rearm(wake);
  for (const model::Action& action : actions) owners_[caller].carrier(action);
  own = std::move(actions);
}

void CoreHost::hand_in_foreign(std::vector<model::Event>& batch) {
  std::vector<model::Action> none;
  Instant wake = kNever;
  {
    const std::lock_guard lock(mutex_);
    handle_locked(batch, net::now());
    route_locked(-1, none);
    wake = flow_->next_wake();
  }
  post_rearm(wake);
}

void CoreHost::apply(const flow::Setup& setup) {
  std::vector<model::Action> none;
  Instant wake = kNever;
  {
    const std::lock_guard lock(mutex_);
    actions_.clear();
    const Instant now = net::now();
    flow_->apply(setup, now, actions_);
    if (sink_ != nullptr) sink_->applied(setup, now, actions_);
    route_locked(-1, none);
    wake = flow_->next_wake();
  }
  post_rearm(wake);
}

void CoreHost::read(const std::function<void(const flow::Flow&)>& reader) const {
  const std::lock_guard lock(mutex_);
  reader(*flow_);
}

void CoreHost::post_rearm(Instant wake) {
  if (owners_.empty()) return;
  // Only an earlier wake-up matters; a later one is found when the armed one fires.
  std::int64_t armed = armed_wake_.load();
  const std::int64_t wanted = wake.time_since_epoch().count();
  while (wanted < armed) {
    if (armed_wake_.compare_exchange_weak(armed, wanted)) {
      owners_[0].loop->post([this, wake] { rearm(wake); });
      return;
    }
  }
}

void CoreHost::rearm(Instant wake) {
  if (wake_timer_.armed() && wake_timer_.deadline() <= wake) return;
  owners_[0].loop->arm(wake_timer_, wake);
}

}  // namespace signalbox::host
