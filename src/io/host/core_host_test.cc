// SPDX-License-Identifier: Apache-2.0
// Goal: whoever hands in events, the thread that owns a request carries out its actions; time
// passes in the core without events; the sink sees the one order of the lock. Method: real loops on
// real threads; what the sink saw is replayed against a core of one thread. TSan finds the rest.
#include "io/host/core_host.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>
#include <thread>

#include "core/model/codec.h"
#include "io/host/fleet_for_test.inc"

namespace signalbox::host {
namespace {

using model::Conclude;
using model::Dispatch;
using model::Event;
using model::Outcome;

// Writes down everything, and is not safe for two threads at once: the host's lock must do.
class Book final : public EventSink {
 public:
  struct Entry {
    bool setup = false;
    Event event;
    Instant at{};
    std::string actions;  // encoded
  };
  void applied(const flow::Setup&, Instant now,
               const std::vector<model::OwnedAction>& actions) override {
    entries.push_back({true, {}, now, encoded(actions)});
  }
  void handled(const Event& event, Instant now,
               const std::vector<model::OwnedAction>& actions) override {
    entries.push_back({false, event, now, encoded(actions)});
  }
  static std::string encoded(const std::vector<model::OwnedAction>& actions) {
    std::string bytes;
    for (const model::OwnedAction& action : actions) model::encode(action, bytes);
    return bytes;
  }
  std::vector<Entry> entries;
};

// An I/O thread: answers its dispatches after a turn, and stops when all its requests are over.
struct Worker {
  std::unique_ptr<net::Loop> loop = *net::Loop::create();
  CoreHost* host = nullptr;
  std::uint16_t owner = 0;
  bool answers = true;
  std::function<void(std::uint64_t)> on_dispatch;
  std::size_t expected = 0;

  std::vector<Event> batch;
  std::thread::id runs_on;
  std::set<std::thread::id> carried_on;
  std::set<std::uint64_t> dispatched;
  std::map<std::uint64_t, Outcome> concluded;

  void join(CoreHost& core) {
    host = &core;
    owner = core.add_owner(*loop, [this](const model::Action& action) { carry(action); });
  }
  void carry(const model::Action& action) {
    carried_on.insert(std::this_thread::get_id());
    if (const auto* dispatch = std::get_if<Dispatch>(&action)) {
      dispatched.insert(dispatch->request.value());
      if (on_dispatch) on_dispatch(dispatch->request.value());
      if (!answers) return;
      const Dispatch sent = *dispatch;
      loop->post([this, sent] {
        batch.push_back(model::FirstToken{sent.request, sent.attempt});
        batch.push_back(answered(sent.request, sent.attempt));
        host->hand_in(owner, batch);
      });
    } else if (const auto* over = std::get_if<Conclude>(&action)) {
      EXPECT_TRUE(concluded.emplace(over->request.value(), over->outcome).second);
      if (concluded.size() == expected) loop->stop();
    }
  }
  void arrive(std::uint64_t request) {
    loop->post([this, request] {
      batch.push_back(arrival(request, owner));
      host->hand_in(owner, batch);
      EXPECT_TRUE(batch.empty());
    });
  }
  void run() {
    runs_on = std::this_thread::get_id();
    loop->run();
  }
};

std::unique_ptr<flow::Flow> fresh_flow(const flow::Setup& setup) {
  return std::make_unique<flow::Flow>(setup.config, 7);
}

TEST(CoreHost, gives_every_action_to_the_thread_that_owns_its_request) {
  constexpr std::size_t kEach = 200;
  const flow::Setup setup = one_model(2);  // places for two: most wait for another's end
  Worker workers[2];
  Book book;
  CoreHost host(fresh_flow(setup), &book);
  for (Worker& worker : workers) {
    worker.join(host);
    worker.expected = kEach;
  }
  host.apply(setup);
  for (std::uint64_t i = 0; i < kEach; ++i) {
    workers[0].arrive(2 * i + 2);
    workers[1].arrive(2 * i + 1);
  }
  std::thread other([&] { workers[1].run(); });
  workers[0].run();
  other.join();

  for (Worker& worker : workers) {
    EXPECT_EQ(worker.carried_on, std::set{worker.runs_on});
    EXPECT_EQ(worker.concluded.size(), kEach);
    EXPECT_EQ(worker.dispatched.size(), kEach);
    for (const auto& [request, outcome] : worker.concluded) {
      EXPECT_EQ(request % 2, worker.owner % 2u) << "a request of the other thread";
      EXPECT_EQ(outcome, Outcome::Completed);
    }
  }
  host.read([&](const flow::Flow& flow) {
    EXPECT_TRUE(flow.idle());
    EXPECT_EQ(flow.totals().arrived, 2 * kEach);
    EXPECT_EQ(flow.totals().illegal_events, 0u);
  });
}

TEST(CoreHost, the_sink_sees_the_one_order_that_gives_these_actions) {
  constexpr std::size_t kEach = 100;
  const flow::Setup setup = one_model(3);
  Worker workers[2];
  Book book;
  CoreHost host(fresh_flow(setup), &book);
  for (Worker& worker : workers) {
    worker.join(host);
    worker.expected = kEach;
  }
  host.apply(setup);
  for (std::uint64_t i = 0; i < kEach; ++i) {
    workers[0].arrive(2 * i + 2);
    workers[1].arrive(2 * i + 1);
  }
  std::thread other([&] { workers[1].run(); });
  // Looks from a third thread, and readers, come between.
  std::thread watcher([&] {
    std::vector<Event> batch;
    for (int i = 0; i < 50; ++i) {
      model::EndpointObserved seen;
      seen.endpoint = model::EndpointId{static_cast<std::uint32_t>(1 + i % 3)};
      seen.state.running = i % 2;
      batch.push_back(seen);
      host.hand_in_foreign(batch);
      EXPECT_TRUE(batch.empty());
      host.read([](const flow::Flow& flow) {
        EXPECT_LE(flow.endpoints(model::PoolId{1}, Instant{}).size(), 3u);
      });
    }
  });
  workers[0].run();
  other.join();
  watcher.join();

  ASSERT_GE(book.entries.size(), 1 + 4 * kEach);
  EXPECT_TRUE(book.entries.front().setup);
  flow::Flow again(setup.config, 7);
  Instant last{};
  for (std::size_t i = 0; i < book.entries.size(); ++i) {
    Book::Entry& entry = book.entries[i];
    EXPECT_GE(entry.at, last);
    last = entry.at;
    flow::Actions actions;
    if (entry.setup) again.apply(setup, entry.at, actions);
    else again.handle(std::move(entry.event), entry.at, actions);
    ASSERT_EQ(Book::encoded(actions), entry.actions) << "entry " << i;
  }
}

TEST(CoreHost, time_passes_in_the_core_although_nothing_happens) {
  flow::Setup setup = one_model(1);
  setup.config.admission.queue_wait_max = std::chrono::milliseconds(20);
  Worker worker;
  worker.answers = false;
  CoreHost host(fresh_flow(setup), nullptr);
  worker.join(host);
  host.apply(setup);
  worker.expected = 1;
  worker.arrive(1);  // takes the only place and never answers
  worker.arrive(2);
  worker.run();
  EXPECT_EQ(worker.dispatched, std::set<std::uint64_t>{1});
  EXPECT_EQ(worker.concluded, (std::map<std::uint64_t, Outcome>{{2, Outcome::QueueTimeout}}));
}

TEST(CoreHost, an_earlier_wake_moves_the_timer_and_it_is_set_again_after_each) {
  flow::Setup setup = one_model(1);
  setup.config.admission.queue_wait_max = std::chrono::hours(1);
  Worker first;   // carries the timer
  Worker second;  // whose requests need it
  first.answers = second.answers = false;
  CoreHost host(fresh_flow(setup), nullptr);
  first.join(host);
  second.join(host);
  host.apply(setup);
  first.expected = 1;
  second.expected = 20;
  std::vector<Event> batch{arrival(1, 0)};
  host.hand_in_foreign(batch);
  setup.config.admission.queue_wait_max = std::chrono::milliseconds(5);
  host.apply(setup);
  for (std::uint64_t i = 2; i <= 21; ++i) second.arrive(i);
  std::thread timer([&] { first.run(); });
  second.run();
  EXPECT_EQ(second.concluded.size(), 20u);
  first.loop->stop();
  timer.join();
  EXPECT_EQ(first.dispatched, std::set<std::uint64_t>{1});
}

TEST(CoreHost, a_new_fleet_lets_those_who_wait_go_and_drops_those_whose_model_is_gone) {
  Worker worker;
  worker.answers = false;
  CoreHost host(fresh_flow(one_model(1)), nullptr);
  worker.join(host);
  host.apply(one_model(1));
  worker.expected = 1;
  worker.arrive(1);
  worker.arrive(2);
  worker.arrive(3);
  flow::Setup nothing = one_model(0);
  auto fleet = std::make_shared<model::Fleet>(*nothing.fleet);
  fleet->models.clear();
  fleet->pools.clear();
  fleet->routes.clear();
  nothing.fleet = fleet;
  // Each from a thread of its own, as the control loop does.
  worker.loop->post([&] {
    EXPECT_EQ(worker.dispatched, std::set<std::uint64_t>{1});
    std::thread([&] { host.apply(one_model(2)); }).join();
  });
  worker.on_dispatch = [&](std::uint64_t request) {
    if (request != 2) return;
    worker.loop->post([&] { std::thread([&] { host.apply(nothing); }).join(); });
  };
  worker.run();
  EXPECT_EQ(worker.dispatched, (std::set<std::uint64_t>{1, 2}));
  EXPECT_EQ(worker.concluded, (std::map<std::uint64_t, Outcome>{{3, Outcome::NoEndpoint}}));
}

TEST(CoreHost, tells_the_core_from_any_thread_that_we_drain) {
  Worker worker;
  CoreHost host(fresh_flow(one_model(1)), nullptr);
  worker.join(host);
  host.apply(one_model(1));
  std::thread([&] {
    std::vector<Event> batch{model::DrainOver{}};
    host.hand_in_foreign(batch);
  }).join();
  worker.expected = 1;
  worker.arrive(1);
  worker.run();
  EXPECT_EQ(worker.concluded, (std::map<std::uint64_t, Outcome>{{1, Outcome::Draining}}));
}

}  // namespace
}  // namespace signalbox::host
