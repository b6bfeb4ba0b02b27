// SPDX-License-Identifier: Apache-2.0
// The load of every endpoint, kept up to date by what is sent and what comes back. Runs under the
// core lock. Every change costs O(log N); memory is bounded by endpoints and requests in flight.
// Keeps INV-3: idle() holds when the last request has ended, on every path.
#pragma once

#include <bit>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "core/dispatch/late.h"
#include "core/model/engine_state.h"
#include "core/routing/config.h"
#include "core/routing/decision.h"
#include "core/routing/endpoint.h"
#include "core/routing/index.h"
#include "core/routing/query.h"

namespace signalbox::routing {

class State {
 public:
  explicit State(const Config& config);
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  // Membership. add() of a known id keeps its load and takes the new facts. remove() forgets the
  // requests in flight there; their later ended() finds nothing.
  void add(model::EndpointId id, const EndpointFacts& facts);
  void remove(model::EndpointId id);
  bool contains(model::EndpointId id) const { return find(id) != nullptr; }
  void set_coefficients(model::EndpointId id, const perf::Coefficients& c, double uncertainty);
  void set_limit(model::EndpointId id, int concurrency_limit);
  void set_reach(model::EndpointId id, double reach_seconds);
  void set_availability(model::EndpointId id, Availability availability);

  // One attempt's way. dispatched() is false for an unknown endpoint, a known key or a full table;
  // the others are false for an attempt that is not in flight: late or duplicate, nothing changes.
  bool dispatched(model::EndpointId id, const RequestKey& key, const Work& work, Instant now);
  bool first_token(const RequestKey& key, Instant now);
  bool progress(const RequestKey& key, std::int64_t tokens, Instant now);
  // The same of many attempts; an endpoint is weighed anew once for all of its own.
  struct Step {
    RequestKey key;
    std::int64_t tokens = 0;
  };
  void progress(std::span<const Step> steps, Instant now);
  bool ended(const RequestKey& key, Instant now);

  // Late binding: an attempt that is to go there and stays here until the endpoint wants it. It
  // weighs on the endpoint as if it had been sent, and ends by ended(), before it is sent as well.
  // False as for dispatched(). `turn` orders those that are held for the same endpoint.
  bool hold(model::EndpointId id, const RequestKey& key, const Work& work, Instant turn,
            Instant now);
  // Whose turn is first; request 0: nobody is held for it.
  RequestKey held_front(model::EndpointId id) const;
  Instant held_front_turn(model::EndpointId id) const;  // kNever: nobody
  // Of ours that were sent. Those that are not streamed do not count: nobody sees when their
  // prompts have been computed, and a prediction that is wrong must not starve an engine.
  dispatch::Feed feed(model::EndpointId id) const;
  // Whether one more may be sent there: those held do not count, though they make it full for
  // whoever looks for a place.
  bool has_room(model::EndpointId id) const;
  // What is ahead of a request that departs now: `inputs` of its place without those held for it.
  Inputs without_held(Inputs inputs) const;

  // A look at the engine, taken now: what it holds beyond ours belongs to others.
  void observed(model::EndpointId id, const model::EngineState& state, Instant now);

  // Lets the predicted time stand for first tokens that nobody will see. The sooner after it this
  // is called, the better; dispatched() and the like do it for their endpoint.
  void presume(model::EndpointId id, Instant now);
  // Seconds for which an engine has shown nothing though a first token is due. 0 while none is late
  // by its whole prediction, or while any of its answers grows.
  double silence(model::EndpointId id, Instant now) const;

  // Nothing of ours in flight and every counter at zero.
  bool idle() const;
  std::int64_t in_flight() const { return records_.size(); }
  bool full() const { return records_.full(); }  // it can keep count of no more
  std::int64_t in_flight(model::ModelId model) const;  // at all endpoints of the model
  std::size_t endpoints() const { return endpoints_; }
  Load load(model::EndpointId id, Instant now) const;

  // What decide() would record of one endpoint, whatever its standing, and whether it could serve.
  // The endpoint has to be known. Exhaustive rules and predictions for one place use these.
  Ask ask(const Query& query, Instant now) const;
  Inputs inputs(model::EndpointId id, const Query& query, Instant now) const;
  bool feasible(model::EndpointId id, const Query& query, Reason* why = nullptr) const;

  const Config& config() const { return config_; }
  // in_flight_max stays as it was at the construction.
  void set_config(const Config& config, Instant now);

 private:
  friend class Search;

  // Endpoints that differ in load and speed alone.
  struct Bucket {
    EndpointFacts facts;  // the common ones: pool, model, accelerator, role, loras, tenants, price
    int members = 0;
    std::array<int, kStandings> standing{};
    std::array<model::EndpointId, kStandings> example{};
    Index open;           // standing Open and Full
    Index ejected;        // standing Ejected and EjectedFull
    struct Fits {
      int open = 0;
      int full = 0;
      model::EndpointId example;
    };
    std::map<float, Fits> fits;     // open and full members by the largest prompt + output
    std::uint64_t admitted_in = 0;  // number of the last search that may use it
  };

  // Of all endpoints of one model.
  struct ModelLoad {
    int members = 0;
    int serving = 0;         // open, full or ejected
    std::int64_t ours = 0;
    std::int64_t others = 0;
    double sum_b = 0;
    double sum_c = 0;
    double work = 0;         // engine seconds dispatched per second, at the base time
    double fresh_mean = 1000;
    double cached_mean = 0;
    double output_mean = 256;
  };

  // Where a seat is in the indices; apart from the seat, since marking touches many.
  struct Spot {
    Index* index = nullptr;
    std::uint32_t position = 0;
  };

  // Scratch of the search, kept for its capacity.
  struct Entry {
    std::uint64_t key;   // bounds of violation and score: such floats are ordered like integers
    std::uint64_t rest;  // level, tie-breaker, tree, number
    auto operator<=>(const Entry&) const = default;

    float violation() const { return std::bit_cast<float>(static_cast<std::uint32_t>(key >> 32)); }
    float total() const { return std::bit_cast<float>(static_cast<std::uint32_t>(key)); }
    int level() const { return static_cast<int>(rest >> 56); }  // 0: a place; else a node
    std::uint32_t tree() const { return static_cast<std::uint32_t>(rest >> 32 & 0xFFFF); }
    std::uint32_t number() const { return static_cast<std::uint32_t>(rest); }
  };
  struct Tree {
    Bucket* bucket;
    Index* index;
    float money;  // seconds_per_usd · USD per second
  };
  struct LevelCost {
    float cached;
    Share<float> share;  // of a holder of this level
    Share<float> hope;   // least of this and all shallower levels
  };

  const Seat* find(model::EndpointId id) const;
  Seat* find(model::EndpointId id);
  ModelLoad& model_load(model::ModelId id);
  const ModelLoad* model_load(model::ModelId id) const;

  std::uint32_t bucket_for(const EndpointFacts& facts);
  void join(Seat& seat);
  void leave(Seat& seat);
  void settle(Seat& seat);
  void count(Seat& seat, Standing standing, int by);
  Index* index_of(Bucket& bucket, Standing standing);
  void put_in(Seat& seat);
  void take_out(Seat& seat);
  Standing standing(const Seat& seat) const;
  int limit(const Seat& seat) const;

  std::uint32_t book(Seat& seat, const RequestKey& key, const Work& work, Instant now);
  void forget(Seat& seat, std::uint32_t index);
  bool grow(std::uint32_t index, std::int64_t tokens, Instant now);
  void presume(Seat& seat, Instant now);
  void decodes(Seat& seat, std::uint32_t index, Instant since);
  void rebase(Instant now);
  void move_base(Instant now);
  double growth(Instant now) const;   // e^((now − base)/window)
  float uncertainty(const Seat& seat, Instant now) const;
  Ask ask(const Query& query, double growth) const;
  static float need(const Query& query);  // prompt + output
  float decay(const Query& query, double growth) const;
  Inputs load_inputs(const Seat& seat, Instant now, float decay, float need,
                     std::int64_t output) const;
  double others_ratio(const ModelLoad& load) const;
  Point point(const Seat& seat) const;

  Config config_;
  std::vector<std::uint32_t> seat_of_;   // by endpoint id; kNone: unknown
  std::vector<Seat> seats_;
  std::vector<Spot> spots_;              // by seat
  std::vector<std::uint32_t> free_seats_;
  std::vector<std::uint32_t> grown_;  // scratch of progress()
  std::size_t endpoints_ = 0;
  std::vector<std::unique_ptr<Bucket>> buckets_;
  std::vector<std::vector<std::uint32_t>> buckets_of_pool_;  // by pool id
  std::vector<ModelLoad> models_;                            // by model id
  InFlight records_;
  Instant base_{};                       // arrival rates and work count from here
  std::uint64_t decisions_ = 0;
  Index::Moved moved_;                   // notes a seat's new position in its index
  std::vector<Entry> heap_;
  std::vector<Tree> trees_;
  std::vector<LevelCost> levels_;
};

}  // namespace signalbox::routing
