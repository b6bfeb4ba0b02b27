// SPDX-License-Identifier: Apache-2.0
// The monitor: one lock around the core. Any I/O thread hands in events; the thread that owns a
// request carries out its actions.
// Keeps INV-11: the order under the lock is the order of the event log.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "base/time.h"
#include "core/flow/flow.h"
#include "core/model/action.h"
#include "core/model/event.h"
#include "io/net/loop.h"

namespace signalbox::host {

// Sees every event and what the core answered, under the lock and in its order. The event log.
class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual void applied(const flow::Setup& setup, Instant now,
                       const std::vector<model::OwnedAction>& actions) = 0;
  virtual void handled(const model::Event& event, Instant now,
                       const std::vector<model::OwnedAction>& actions) = 0;
};

class CoreHost {
 public:
  // Carries out one action on the owner's thread.
  using Carrier = std::function<void(const model::Action&)>;

  // `sink` may be null; it must outlive the host.
  CoreHost(std::unique_ptr<flow::Flow> flow, EventSink* sink);
  CoreHost(const CoreHost&) = delete;
  CoreHost& operator=(const CoreHost&) = delete;

  // Registers an I/O thread before it runs. The first one also carries the core's wake-up timer.
  std::uint16_t add_owner(net::Loop& loop, Carrier carrier);

  // Hands in a turn's events; actions for the caller's own requests are carried out before it
  // returns, others are posted to their loops. `batch` is emptied, its capacity kept.
  // Called on the thread of `caller`.
  void hand_in(std::uint16_t caller, std::vector<model::Event>& batch);

  // The same for events of a thread that owns no requests (polling, signals).
  void hand_in_foreign(std::vector<model::Event>& batch);

  // Replaces the configuration and the fleet.
  void apply(const flow::Setup& setup);

  // Runs `reader` under the lock. It must be short: 200 µs at most.
  void read(const std::function<void(const flow::Flow&)>& reader) const;

 private:
  struct Owner {
    net::Loop* loop;
    Carrier carrier;
  };

  void handle_locked(std::vector<model::Event>& batch, Instant now);
  // Splits actions_ by owner. The caller's own go to `own`, the rest to their loops.
  void route_locked(int caller, std::vector<model::Action>& own);
  void rearm(Instant wake);
  void post_rearm(Instant wake);

  mutable std::mutex mutex_;
  std::unique_ptr<flow::Flow> flow_;
  EventSink* sink_;
  std::vector<Owner> owners_;
  std::vector<model::OwnedAction> actions_;  // of the events being handled
  std::vector<model::OwnedAction> event_actions_;
  net::Timer wake_timer_;
  std::atomic<std::int64_t> armed_wake_{Instant::max().time_since_epoch().count()};
};

}  // namespace signalbox::host
