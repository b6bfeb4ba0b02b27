// SPDX-License-Identifier: Apache-2.0
// The inside of a run: clients, I/O threads, network and engines around one core, on a virtual
// clock. One file a part: world.cc (clock and door), clients.cc, carrier.cc, engines.cc,
// handover.cc, lifecycle.cc, faults.cc, outcome.cc; this header is the map. Private to sim.
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
#include "sim/engine/start.h"
#include "sim/event_queue.h"
#include "sim/handover_checker.h"
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
    Cache,       // who: endpoint, what: parked KV events reach the decider
    Arrived,     // who: engine, what: sequence whose KV it has now
    Started,     // who: engine, what: from what
    Awake,       // who: engine
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
    std::vector<model::EndpointId> endpoints;  // one, or one a rank
    bool declared = true;            // in the fleet
    bool serves = true;              // lists the pool's model
    bool down = false;
    bool gone = false;               // for ever
    bool given_notice = false;  // its node will be taken away
    bool replaced = false;           // a newcomer comes up in its place
    bool asleep = false;
    bool frozen = false;
    bool severed = false;            // from the gateway
    double fail = 0;                 // shares of requests
    double throttle = 0;
    double cut = 0;
    double drop = 0;
    double delay = 1;                // of what passes between it and the gateway: a factor
    std::vector<truth::Output> held; // what it told while nothing passed
    Instant link_free{};             // when the next transfer of KV may begin
    std::int64_t incoming = 0;       // transfers on their way here
    Instant armed = kNever;          // when the next Step is due
    std::vector<model::EngineState> last_seen;  // of each endpoint
    truth::Counters past;            // sums over earlier incarnations
  };

  // What an endpoint is.
  struct Seat {
    std::uint32_t host = 0;
    int rank = truth::Engine::kAnyRank;  // that it pins
  };

  // An attempt on its way, as the I/O thread and the network know it.
  struct Flight {
    model::RequestId request;
    model::AttemptId attempt;
    std::uint16_t owner = 0;
    std::uint32_t host = 0;
    int rank = truth::Engine::kAnyRank;
    truth::Engine::Place place;      // in the engine, once it has been reached
    bool stream = true;
    bool reached = false;            // the engine has it
    // Prefill and decode by two engines: the prompt is computed, its KV travels; else one does all,
    // or the second has taken over.
    enum class Half : std::uint8_t { Whole, Prefills, Travels };
    Half half = Half::Whole;
    std::uint32_t decodes_at = 0;
    std::uint32_t runs_on = 0;       // the host that has the sequence
    Instant prefilled{};
    std::int64_t prompt_tokens = 0;
    std::int64_t cached_tokens = 0;
    std::int64_t tokens = 0;         // of the answer, as last read
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
  truth::SequenceSpec sequence_of(truth::SequenceId id, const Flight& flight, const Ask& ask,
                                  const truth::Engine& engine) const;
  Duration way(const Host& host) const;
  bool refuse(truth::SequenceId id, Host& host);
  void other_request();
  void step(std::uint32_t host);
  void take_output(std::uint32_t host, const truth::Output& output);
  void rearm(std::uint32_t host);
  void catch_up(Host& host);
  void catch_up_all();
  void read_progress(Flight& flight);
  void scrape(std::uint32_t host);
  void tell_look(Host& host, std::size_t number, Duration lag);
  model::EngineState look(const Host& host, int rank) const;
  Duration look_interval() const;
  void tell_cache(std::uint32_t host);

  // handover.cc
  std::optional<std::uint32_t> decode_host(const EngineGroup& of, std::int64_t tokens) const;
  void hand_over(truth::SequenceId id);
  void kv_arrived(truth::SequenceId id, std::uint32_t to);

  // lifecycle.cc
  void die(std::uint32_t host);
  void fall_asleep(std::uint32_t host);
  void read_all_progress(std::uint32_t host);
  void lose(const std::vector<truth::SequenceId>& lost);
  void start(std::uint32_t host, truth::StartFrom from);
  void started(std::uint32_t host, truth::StartFrom from);
  void wake_up(std::uint32_t host);

  // faults.cc
  void begin(const Fault& fault);
  void end(const Fault& fault);
  void join_again(std::uint32_t host);
  void mend_link(std::uint32_t host);
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
  Rng start_rng_;       // how long engines take to come up
  std::unique_ptr<LoadSource> load_;
  Checker checker_;
  HandoverChecker handovers_;
  Recorder recorder_;
  std::unique_ptr<Decider> decider_;
  Senses senses_;
  flow::Actions actions_;
  EventQueue<What> queue_;
  Instant now_{};

  std::vector<Host> hosts_;
  std::vector<Seat> seats_;          // by id of endpoint, less one
  double price_factor_ = 1;
  int limit_cut_ = 0;                // taken off declared concurrency limits
  std::map<std::size_t, int> reassigned_;  // groups whose pool has another model now
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
  int starting_ = 0;                 // engines
  Instant paid_until_{};
  Report report_;
};

}  // namespace signalbox::sim
