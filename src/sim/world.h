// SPDX-License-Identifier: Apache-2.0
// The inside of a run: clients, I/O threads, network and engines around one core, on a virtual
// clock. One file a part: world.cc (clock and door), clients.cc, carrier.cc, engines.cc, faults.cc,
// outcome.cc; this header is the map. Private to sim.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/rng.h"
#include "sim/checker.h"
#include "sim/decider.h"
#include "sim/engine/engine.h"
#include "sim/event_queue.h"
#include "sim/load.h"
#include "sim/recorder.h"
#include "sim/run.h"

namespace signalbox::sim {

class World {
 public:
  explicit World(const Scenario& scenario);
  Report run();

 private:
  // What is due; `who` and `what` name its subject.
  enum class Due : std::uint8_t {
    Arrive,      // the load brings a task; what: number of the arming
    Retry,       // what: task that is tried again, who: for the how manieth time
    Press,       // what: task whose user asks a second time
    Leave,       // what: task whose user leaves
    Timeout,     // what: request whose client has waited long enough
    Other,       // somebody else's request reaches an engine
    Deliver,     // what: a parked event reaches the core
    Carry,       // what: a parked action reaches its thread
    Reach,       // what: a flight's request reaches its engine
    Close,       // who: engine, what: sequence whose connection was closed
    Step,        // who: engine
    Scrape,      // who: engine
    Digest,      // who: thread
    Wake,        // what: number of the arming
    Cache,       // who: engine, what: parked KV events reach the decider
    FaultBegins, // what: index
    FaultEnds,   // what: index
    Look,        // the report's own look at everything
  };
  struct What {
    Due due = Due::Arrive;
    std::uint32_t who = 0;
    std::uint64_t what = 0;
  };

  // An engine with what surrounds it.
  struct Host {
    std::unique_ptr<truth::Engine> engine;
    std::size_t group = 0;
    std::size_t number = 0;          // among the scenario's engines; a newcomer takes one over
    model::EndpointId endpoint;
    bool declared = true;            // in the fleet
    bool serves = true;              // lists the pool's model
    bool down = false;
    bool frozen = false;
    double fail = 0;                 // shares of requests
    double throttle = 0;
    double cut = 0;
    Instant armed = kNever;          // when the next Step is due
    model::EngineState last_seen;
    truth::Counters past;            // sums over earlier incarnations
  };

  // An attempt on its way, as the I/O thread and the network know it.
  struct Flight {
    model::RequestId request;
    model::AttemptId attempt;
    std::uint16_t owner = 0;
    std::uint32_t host = 0;
    bool stream = true;
    bool reached = false;            // the engine has it
    std::int64_t prompt_tokens = 0;
    std::int64_t cached_tokens = 0;
    std::int64_t tokens = 0;         // of the answer so far
    std::int64_t reported = 0;       // of these, in digests
    std::int64_t cut_after = -1;     // tokens; negative: never
    Instant sent{};
    Instant at_engine{};
    Instant admitted{};
    Instant first{};
    Instant latest{};
  };

  // An event on its way to the decider.
  struct Parked {
    model::Event event;
    std::optional<LoadDetails> details;  // with an EndpointObserved
  };

  // What a user wants: one request, and more when it is tried again or asked twice.
  struct Task {
    Ask ask;
    Instant began{};
    std::vector<model::RequestId> requests;  // under way
    int retries_due = 0;
    bool counted = true;
    bool done = false;
    bool left = false;
  };

  // The client's side of one request.
  struct Client {
    const Ask& ask;                  // the task's, which outlives it
    std::uint64_t task = 0;
    int retries = 0;                 // before it
    Instant arrived{};
    std::uint16_t owner = 0;
    bool gone = false;
    truth::SequenceId flight = 0;    // 0: none
    Instant first{};                 // first token at the gateway
    bool has_first = false;
    std::int64_t tokens = 0;         // that its last attempt gave
  };

  // world.cc
  void perform(const What& what);
  void feed(model::Event&& event);
  void apply();
  void follow_up(flow::Actions& actions);
  void send(model::Event event, Duration delay, std::optional<LoadDetails> details = {});
  void deliver(std::uint64_t parked);
  void arm_wake();
  void wake(std::uint64_t arming);
  bool at_rest() const;

  // clients.cc
  Instant coming() const;
  void await_arrival();
  void arrive(std::uint64_t arming);
  void begin(Ask ask);
  void request(std::uint64_t task, int retries);
  void ask_again(std::uint64_t task, int retries);
  void press(std::uint64_t task);
  void leave(std::uint64_t task);
  void time_out(model::RequestId request);
  void hang_up(model::RequestId request);
  void conclude(const model::Conclude& action);
  void succeeded(Task& task, const Client& client);
  void failed(std::uint64_t task, int retries, Duration retry_after);
  void settle(std::uint64_t task);

  // carrier.cc
  void carry(const model::OwnedAction& action);
  void carry_out(const model::Action& action);
  void dispatch(const model::Dispatch& action);
  void abort(const model::Abort& action);
  void end_flight(truth::SequenceId id, model::AttemptResult result, int status, Duration delay);
  void digest(std::uint32_t thread);
  void close_upstream(truth::SequenceId id);
  bool drains_on_abort(truth::SequenceId id) const;  // whether its pool does

  // engines.cc
  void add_host(std::size_t group, std::size_t number);
  void reach(truth::SequenceId id);
  bool refuse(truth::SequenceId id, Host& host);
  void other_request();
  void step(std::uint32_t host);
  void take_output(std::uint32_t host, const truth::Output& output);
  void rearm(std::uint32_t host);
  void catch_up(Host& host);
  void scrape(std::uint32_t host);
  model::EngineState look(const Host& host) const;
  Duration look_interval() const;
  void tell_cache(std::uint32_t host);

  // faults.cc
  void begin(const Fault& fault);
  void end(const Fault& fault);
  void die(std::uint32_t host);
  std::uint32_t host_of(const Fault& fault) const;

  // fleet.cc
  flow::Setup setup() const;
  model::Fleet fleet() const;
  std::int64_t context() const;
  std::uint32_t routes() const;

  // outcome.cc
  void pay();
  void take_look();
  Report report();
  EngineSums sums() const;
  void check_engines(const EngineSums& sums);

  void at(Instant when, Due due, std::uint32_t who = 0, std::uint64_t what = 0) {
    queue_.push(when, {due, who, what});
  }

  Scenario scenario_;
  Rng rng_;             // network, disorder, faults
  Rng others_rng_;
  Rng sdk_rng_;         // jitter of clients' back-off
  std::unique_ptr<LoadSource> load_;
  Checker checker_;
  Recorder recorder_;
  std::unique_ptr<Decider> decider_;
  Senses senses_;
  flow::Actions actions_;
  EventQueue<What> queue_;
  Instant now_{};

  std::vector<Host> hosts_;
  std::uint32_t endpoints_ = 0;      // ids given
  double price_factor_ = 1;
  int limit_cut_ = 0;                // taken off declared concurrency limits
  std::unordered_map<std::uint64_t, Task> tasks_;         // looked up, never walked
  std::unordered_map<model::RequestId, Client> clients_;  // likewise
  std::map<truth::SequenceId, Flight> flights_;
  truth::SequenceId sequences_ = 0;  // ids given; others' have the top bit
  std::vector<truth::Output> outputs_;

  // Parked until due, by number.
  std::unordered_map<std::uint64_t, Parked> events_;
  std::unordered_map<std::uint64_t, std::vector<truth::CacheEvent>> cache_events_;
  std::unordered_map<std::uint64_t, model::OwnedAction> late_actions_;
  std::uint64_t parked_ = 0;
  std::size_t told_ = 0;             // events on their way that are no looks at engines
  std::vector<Instant> thread_busy_until_;  // actions for a thread stay in order

  std::uint64_t requests_ = 0;       // ids given
  std::uint64_t tasks_begun_ = 0;
  std::uint64_t arrival_arming_ = 0;
  Instant arrival_at_ = kNever;      // when the next Arrive is due
  std::size_t faults_open_ = 0;      // that have not ended
  std::uint64_t arming_ = 0;
  Instant wake_at_ = kNever;
  bool draining_ = false;
  Instant paid_until_{};
  Report report_;
};

}  // namespace signalbox::sim
