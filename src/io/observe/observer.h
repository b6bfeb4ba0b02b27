// SPDX-License-Identifier: Apache-2.0
// Watches engines: finds out what they are, looks at their load, and tells both. Everything runs on
// the thread of one net::Loop, callbacks included. One connection per address is kept open.
// Keeps: no more than Config::concurrency_max looks are in progress; an engine that is back is seen
// within a second.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/rng.h"
#include "core/model/event.h"
#include "io/net/loop.h"
#include "io/observe/config.h"
#include "io/observe/target.h"

namespace signalbox::observe {

// Who is told. Callbacks may call set_targets(); each may be empty.
struct Sink {
  // EndpointObserved or EndpointUnreachable, for each member of a target.
  std::function<void(model::Event)> event;
  // A target was found out, or turned out to be something else than before.
  std::function<void(const Found&)> found;
  // A target failed that had not failed before; the error says how.
  std::function<void(std::string_view name, const Error&)> lost;
  // Once after each set_targets(): every target has been found out or has failed.
  std::function<void()> settled;
};

struct Stats {
  std::uint64_t looks = 0;     // answers taken
  std::uint64_t failures = 0;  // looks without a usable answer
  std::uint64_t connects = 0;
  std::uint64_t bytes = 0;     // received
};

class Observer {
 public:
  Observer(net::Loop& loop, Config config, Rng rng, Sink sink);
  ~Observer();
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;

  // Replaces what is watched. A target that was watched before in the same way (address, TLS, key,
  // kind) goes on undisturbed; a new member of it learns the last state at once.
  void set_targets(std::vector<Target> targets);

  const Stats& stats() const { return stats_; }
  std::size_t active() const { return active_; }  // looks in progress

 private:
  class Watch;

  void enqueue(Watch& watch);
  void pump();
  void finished();
  void settled_one();
  void retire(std::unique_ptr<Watch> watch);
  std::string take_storage();
  void give_storage(std::string storage);

  static constexpr std::size_t kScratch = 64 * 1024;  // bytes of one read

  net::Loop& loop_;
  const Config config_;
  Rng rng_;
  Sink sink_;
  Stats stats_;
  std::vector<std::unique_ptr<Watch>> watches_;
  std::vector<std::unique_ptr<Watch>> retired_;  // until no callback of theirs can be running
  net::Timer sweep_;
  net::Timer settle_;
  std::deque<Watch*> queue_;
  std::vector<std::string> storage_;  // memory of bodies, reused
  std::unique_ptr<char[]> scratch_;   // what one read fills
  std::size_t active_ = 0;
  std::size_t unsettled_ = 0;
  bool settling_ = false;
  bool pumping_ = false;
};

}  // namespace signalbox::observe
