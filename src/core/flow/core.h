// SPDX-License-Identifier: Apache-2.0
// The inside of Flow: every record of the core and the phases that work on them. One file a phase;
// this header is the map. Private to core/flow.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/rng.h"
#include "core/admission/tenant_caps.h"
#include "core/admission/wait_queue.h"
#include "core/cache/prefix_index.h"
#include "core/dispatch/arrival_rate.h"
#include "core/dispatch/berth.h"
#include "core/dispatch/gate.h"
#include "core/dispatch/gate_watch.h"
#include "core/dispatch/shuttle.h"
#include "core/flow/flow.h"
#include "core/ledger/ledger.h"
#include "core/model/grammar.h"
#include "core/perf/accuracy.h"
#include "core/perf/calibrator.h"
#include "core/perf/evidence.h"
#include "core/perf/output_length.h"
#include "core/perf/stretch.h"
#include "core/recovery/ejector.h"
#include "core/recovery/retry.h"
#include "core/recovery/retry_budget.h"
#include "core/routing/decide.h"
#include "core/routing/state.h"

namespace signalbox::flow {

// One request from its arrival to its conclusion.
struct Request {
  model::RequestArrived arrived;      // its chain is bound to `model`
  model::RequestGrammar grammar;
  model::AttemptGrammar attempt_grammar;
  model::ModelId model;               // chosen target of the route
  std::vector<model::ModelId> models_tried;  // of the route, that had no place for it
  Instant at{};                       // arrival
  Instant waiting_since{};
  bool waiting = false;               // in the queue
  bool has_waited = false;
  model::EndpointId held_for;         // of those that wait: who is to get it once it wants more
  bool tenant_slot = false;           // counts against its tenant's cap
  int attempts = 0;
  int forgiven = 0;                   // of these, refused connections behind which it waited on
  int answers = 0;                    // failing answers of engines so far
  std::vector<model::EndpointId> tried;

  // the present attempt
  model::AttemptId attempt;
  model::EndpointId endpoint;         // 0: none runs
  model::PoolId pool;                 // of the endpoint, which may leave meanwhile
  recovery::Pass pass;
  recovery::RetryBudget::Kind kind = recovery::RetryBudget::Kind::First;
  std::uint64_t decision = 0;
  Instant sent{};
  Instant first_token{};
  bool has_first_token = false;
  bool was_idle = false;              // the endpoint had nothing else when it was sent
  std::int64_t prompt_tokens = 0;     // as believed at dispatch
  std::int64_t cached_tokens = 0;
  std::int64_t relayed_tokens = 0;    // of the answer, as digests told
  cache::Belief belief;               // what the index held of the prompt there
  double others_at_send = 0;          // in flight there beside it; of these
  double decoding_at_send = 0;        // sequences past their first token, and
  double kv_at_send = 0;              // tokens of all in flight there
  double fresh_at_first = 0;          // what its endpoint had computed of prompts by its first
  double attention_at_first = 0;      // token, see EndpointState
  Instant alone_due{};                // its first token, if its endpoint computes for itself
  double ttft_predicted = 0;          // s
  double step_foreseen = 0;           // s, of decoding, with those in flight when it was sent
  double e2e_predicted = 0;           // s
  double sigma = 0;                   // relative uncertainty that was claimed
};

struct EndpointState {
  model::Endpoint declared;
  model::EndpointGrammar grammar;
  perf::HistogramWatch histograms;
  std::uint64_t incarnation = 0;
  std::int64_t generated_total = -1;  // for restarts that no incarnation tells
  bool observed = false;
  bool tells = false;                 // has told its load
  bool unreachable = false;           // the last look failed
  bool no_connection = false;         // it did not even accept one
  bool healthy = false;               // nothing speaks against it; counted in its pool
  Instant observed_at{};              // before any look: when it was declared
  double kv_usage = -1;
  double fresh_done = 0;              // prompt tokens computed there for our requests that have
  double attention_done = 0;          // their first token, and the sum of fresh·(cached + fresh/2)
  int slots = 0;                      // as the engine told last; 0: never
  model::SumCount token_seconds;      // as of the last look
  double decoding = 0;                // sequences past their first token then
  double trouble_price = 0;           // s, of failures and silence, as routing was told
  std::uint64_t believed_version = 0; // of the pool's calibration when routing was told last
  std::uint32_t instance = 0;         // of a pool that dispatches by shuttle, and its rank there
  std::uint32_t rank = 0;
};

// Endpoints of one address: the ranks of one engine, which begin their passes together.
struct Instance {
  std::string address;
  std::vector<model::EndpointId> ranks;
  dispatch::Gate gate;
  // What the fullest rank has to do in the pass under way, and whether its time teaches: not where
  // nobody knows when it began.
  perf::PrefillEvidence pass;
  bool pass_teaches = false;
};

// An endpoint that came back serves within a second.
constexpr Duration kUnreachableRetryAfter = std::chrono::seconds(1);
// Another gateway behind the same name can take it at once.
constexpr Duration kDrainRetryAfter = std::chrono::seconds(1);

struct PoolState {
  explicit PoolState(const recovery::Config& config) : budget(config) {}

  model::Pool declared;
  std::vector<model::EndpointId> endpoints;  // ascending
  int healthy = 0;                           // of these
  std::unique_ptr<perf::Calibrator> calibrator;
  perf::Stretch stretch;
  perf::Accuracy accuracy;
  recovery::RetryBudget budget;
  std::size_t refresh_next = 0;       // endpoint whose coefficients are handed on next
  model::DispatchMode acting = model::DispatchMode::Immediate;  // never Auto
  std::vector<Instance> instances;    // of one that dispatches by shuttle, or may; else none
  dispatch::GateWatch watch;          // of one that may
  // One's time to the first token tells little of one's own prompt.
  bool shares_passes() const {
    return acting == model::DispatchMode::Shuttle || watch.barrier() == dispatch::Barrier::Yes;
  }
  dispatch::Rhythm rhythm;
  dispatch::ArrivalRate arrivals;     // of those who were to board
  Instant board_at = kNever;          // when a gate opens or a hold ends, if nothing happens sooner
};

class Core {
 public:
  Core(const Config& config, std::uint64_t seed);

  // apply.cc
  void apply(const Setup& setup, Instant now, Actions& out);

  // arrive.cc
  void on(model::RequestArrived&& event, Instant now, Actions& out);

  // relay.cc
  void on(const model::FirstToken& event, Instant now, Actions& out);
  void on(const model::Progress& event, Instant now, Actions& out);

  // end.cc
  void on(const model::ClientGone& event, Instant now, Actions& out);
  void on(const model::AttemptEnded& event, Instant now, Actions& out);
  void on(const model::DrainOver& event, Instant now, Actions& out);

  // observe.cc
  void on(const model::EndpointObserved& event, Instant now, Actions& out);
  void on(const model::EndpointUnreachable& event, Instant now, Actions& out);

  // tick.cc
  void on(const model::Tick& event, Instant now, Actions& out);
  Instant next_wake() const;

  // view.cc
  Totals totals() const;
  std::vector<EndpointView> endpoints(model::PoolId pool, Instant now) const;
  PoolView pool(model::PoolId pool) const;
  DispatchView dispatch(model::PoolId pool) const;
  const DecisionRing& decisions() const { return decisions_; }
  const ledger::Ledger& ledger() const { return ledger_; }
  const perf::Accuracy* accuracy(model::PoolId pool) const;
  cache::Stats cache_stats() const { return index_.stats(); }
  std::size_t in_flight() const { return requests_.size(); }
  bool idle() const;

 private:
  enum class Placed {
    Sent,
    Waits,       // every place is full
    WaitsApart,  // full are the places that it could use; others may find one
    Held,        // has a place, and departs for it later
    QueueFull,   // and the queue as well
    Nowhere,
  };

  // apply.cc
  void add_pool(const model::Pool& pool, const model::Fleet& fleet);
  void add_endpoint(const model::Endpoint& endpoint, Instant now);
  void remove_endpoint(model::EndpointId id, Instant now);
  routing::EndpointFacts facts(const PoolState& pool, const EndpointState& endpoint,
                               Instant now) const;

  // arrive.cc
  model::ModelId choose_model(const Request& request);
  model::ModelId draw_target(const Request& request, const model::Route& route, double draw,
                             bool healthy) const;
  model::ModelId next_model(const Request& request) const;
  bool goes_over(Request& request, Instant now, Actions& out);
  void bind(Request& request, model::ModelId model) const;
  bool servable(model::ModelId model) const;
  bool servable(model::ModelId model, const Request& request, bool healthy) const;

  // place.cc
  Placed find_place(Request& request, Instant now, Actions& out);
  Placed place(Request& request, Instant now, Actions& out);
  bool rests(model::EndpointId id, Instant now);
  routing::Query ask(const Request& request, std::span<const model::PoolId> pools);
  routing::Decision decide(const routing::Query& q, Instant now);
  DecisionRecord& remember(const Request& request, const routing::Decision& decision, Instant now);
  void dispatch(Request& request, const routing::Decision& decision, const routing::Inputs& chosen,
                Instant now, Actions& out);
  bool enqueue(Request& request, Instant since);
  void drain_queue(model::ModelId model, Instant now, Actions& out);
  Placed place_waiting(Request& request, Instant now, Actions& out);
  void lost_its_place(Request& request, Instant now, Actions& out);
  double output_mean(const perf::LengthKey& key, std::int64_t output_max);
  Duration retry_after(model::ModelId model) const;
  const model::Objective* objective(const Request& request) const;
  cache::Query query(const Request& request) const;
  static bool prefills(const Request& request);

  // depart.cc
  model::DispatchMode mode(model::EndpointId id);
  bool hold(Request& request, const routing::Decision& decision, Instant now);
  void let_go(Request& request, Instant now);
  void feed(model::EndpointId id, Instant now, Actions& out);
  routing::Work work(const Request& request, const routing::Decision& decision) const;

  // board.cc
  void group_ranks(PoolState& pool);
  void board(PoolState& pool, Instant now, Actions& out);
  void board(PoolState& pool, Instance& instance, Instant now, Actions& out);
  void line_up(const PoolState& pool, const Instance& instance, const perf::Coefficients& c,
               Instant now);
  dispatch::Berth berth(const Instance& instance, dispatch::Instance car, Instant now);
  void stay_for_better(const PoolState& pool, const Instance& instance,
                       const dispatch::Instance& car, Instant now);
  std::optional<dispatch::Passenger> passenger(const Request& request, const PoolState& pool,
                                               const Instance& instance,
                                               const perf::Coefficients& c, Instant now);
  bool could_take(model::EndpointId id, const routing::Query& q) const;
  bool may_leave_home(const routing::Query& q, const PoolState& pool,
                      const Instance& instance, double seconds, const perf::Coefficients& c,
                      Instant now) const;
  bool depart(Request& request, model::EndpointId id, int boarded, double pass_seconds,
              Instant now, Actions& out);
  void pass_begins(Instance& instance, const dispatch::Instance& car, Instant now);
  void pass_computed(const Request& request, Instant now, Actions& out);
  void watch_gate(PoolState& pool, const Request& request, Instant now);
  void choose_mode(PoolState& pool);

  // end.cc
  void give_up(Request& request, Instant now, Actions& out);
  void open_up(model::EndpointId id, model::ModelId model, Instant now, Actions& out);
  void send_home(Instant now, Actions& out);
  model::Usage unreported(const Request& request, const model::AttemptEnded& event) const;
  void close_attempt(Request& request, const model::AttemptEnded& event, Instant now);
  void learn(Request& request, const model::AttemptEnded& event, Instant now);
  void calibrate(Request& request, const model::AttemptEnded& event, Instant now);
  static void watch_stretch(PoolState& pool, const Request& request,
                            const model::AttemptEnded& event, Instant now);
  void finished_for_nobody(Request& request, const model::AttemptEnded& event, Instant now,
                           Actions& out);
  void succeeded(Request& request, const model::AttemptEnded& event, Instant now, Actions& out);
  void conclude(Request& request, model::Outcome outcome, model::Conclude::Answer answer,
                Duration retry_after, Actions& out);

  // recover.cc
  void failed(Request& request, const model::AttemptEnded& event, Instant now, Actions& out);
  bool waits_on(Request& request, const model::AttemptEnded& event, Instant now);

  // observe.cc
  bool restarted(const EndpointState& endpoint, const model::EngineState& state) const;
  void forget_cache(EndpointState& endpoint);
  void forget_failures(model::EndpointId id, const PoolState& pool, Instant now);
  void watch_decoding(PoolState& pool, EndpointState& endpoint, const model::EngineState& state,
                      const routing::Load& load, Instant now);

  // health.cc
  void take_health_changes();
  void count_health(EndpointState& endpoint);
  void connects(EndpointState& endpoint, bool yes);
  void tell_availability(const EndpointState& endpoint);
  void price_trouble(model::EndpointId id, Instant now);
  bool price_troubles(Instant now);

  // tick.cc
  void refresh_beliefs(Instant now);
  bool refresh_coefficients(Instant now);
  void expire_waiting(Instant now, Actions& out);

  Request* find(model::RequestId id);
  EndpointState* find(model::EndpointId id);
  PoolState* pool_of(model::EndpointId id);
  // Counts what is not legal; true: act on it.
  bool legal(model::Verdict verdict);

  Config config_;
  Rng route_rng_;
  Rng tie_rng_;
  std::shared_ptr<const model::Fleet> fleet_;
  std::map<model::PoolId, PoolState> pools_;
  std::map<model::EndpointId, EndpointState> endpoints_;
  std::map<model::ModelId, std::vector<model::PoolId>> pools_of_model_;
  std::map<model::ModelId, std::set<std::uint64_t>> loras_of_model_;  // hashes of their names
  std::unordered_map<model::RequestId, std::unique_ptr<Request>> requests_;  // walked but once

  admission::TenantCaps caps_;
  admission::WaitQueue queue_;
  cache::PrefixIndex index_;
  cache::Match match_;                 // room for look-ups
  routing::State load_;
  std::vector<routing::State::Step> steps_;  // scratch of a digest
  recovery::Ejector ejector_;
  ledger::Ledger ledger_;
  perf::OutputLengths lengths_;
  DecisionRing decisions_;

  struct KnownLength {
    std::uint64_t hash = 0;
    double mean = 0;
    int uses_left = 0;
  };
  std::array<KnownLength, 1024> known_lengths_{};

  Totals totals_;
  bool drain_over_ = false;
  std::vector<model::RequestId> leaving_;  // in flight when the drain was over; the last goes first
  static constexpr double kServiceSeconds = 1;        // before anything is known
  std::map<model::ModelId, double> service_seconds_;  // decayed mean of how long an answer takes
  model::EndpointId price_next_;       // whom the next slice of price_troubles() begins with
  bool size_matters_ = false;               // to the last one placed: it is too large for some
  std::vector<const Request*> alike_;       // scratch of drain_queue()
  std::set<model::ModelId> may_move_;       // whose queues still may move, at the next tick
  bool any_waits_to_depart_ = false;        // whether a pool dispatches otherwise than at once
  dispatch::Shuttle shuttle_;
  std::vector<dispatch::Passenger> line_;   // scratch of board()
  std::vector<dispatch::Rank> ranks_, other_ranks_;
  std::vector<dispatch::Berth> others_;
  std::vector<dispatch::Gate::Aboard> boarded_;
  std::set<model::ModelId> want_over_;      // some of theirs would go to another model's places
  std::set<model::ModelId> apart_;          // all who wait for them wait apart
  std::vector<model::EndpointId> clearing_; // restarted engines whose cache is cleared in slices
  Instant rest_over_at_ = kNever;      // who waits looks again then: some endpoint will have rested
  Instant refresh_at_ = kNever;        // what is believed of endpoints is handed to routing then
};

}  // namespace signalbox::flow
