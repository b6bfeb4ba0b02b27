// SPDX-License-Identifier: Apache-2.0
// A peer's rule as a decider: keeps what every router keeps (requests, counts from its own events,
// the last look at each endpoint, passive health), asks the rule, retries as the peer does, and
// ends requests by the grammar that our core obeys. Sends at arrival; queues only for a rule that
// waits.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "sim/decider.h"
#include "sim/peers/rule.h"

namespace signalbox::sim {

class PeerDecider : public Decider {
 public:
  PeerDecider(std::unique_ptr<peers::Rule> rule, std::uint64_t seed);

  void apply(const flow::Setup& setup, Instant now, flow::Actions& out) override;
  void handle(model::Event&& event, Instant now, flow::Actions& out) override;
  Instant next_wake() const override;
  flow::Totals totals() const override;
  Senses senses() const override;
  void asked(model::RequestId request, const Ask& ask) override;
  void profiled(model::EndpointId endpoint, const truth::EngineSpec& spec) override;
  void looked(model::EndpointId endpoint, const LoadDetails& details) override;
  void cache_changed(model::EndpointId endpoint,
                     std::span<const truth::CacheEvent> changes) override;

 private:
  using Slot = peers::Slot;

  struct Request {
    std::uint16_t owner = 0;
    model::ModelId model;
    std::uint64_t session = 0;
    std::vector<peers::Piece> prompt;
    std::vector<std::vector<peers::Piece>> blocks;  // by block size of the fleet
    std::int64_t tokens = 0;
    std::int64_t output_max = 0;
    Instant arrived{};
    model::AttemptId attempt;             // the newest
    int tries = 0;
    std::vector<model::EndpointId> tried;
    Instant retry_at = kNever;            // waits for its next try
    bool queued = false;                  // waits in the router's queue
    // Of the attempt that runs; 0: none does.
    model::EndpointId endpoint;
    Slot slot = 0;
    bool booked = false;                  // counted at the slot: its endpoint has not left
    bool prefilling = false;
    std::int64_t uncached = 0;
    Instant sent{};
    Instant first = kNever;
  };
  using Requests = std::unordered_map<model::RequestId, Request>;  // walked in order of ids only

  // What is kept of an endpoint beside peers::Seen.
  struct Watch {
    model::EndpointId endpoint;
    model::ModelId model;
    Instant unreachable_since = kNever;
    int failures = 0;      // in a row
    Instant open_until{};  // left alone until then
    int probation = 0;     // successes that are still to come
  };

  enum class Placed : std::uint8_t { Sent, Waits, Refused, Nowhere };

  // peer_decider.cc
  void on(const model::RequestArrived& event, Instant now, flow::Actions& out);
  void on(const model::ClientGone& event, Instant now, flow::Actions& out);
  void on(const model::FirstToken& event, Instant now, flow::Actions& out);
  void on(const model::AttemptEnded& event, Instant now, flow::Actions& out);
  void on(const model::Progress& event, Instant now, flow::Actions& out);
  void on(const model::EndpointObserved& event, Instant now, flow::Actions& out);
  void on(const model::EndpointUnreachable& event, Instant now, flow::Actions& out);
  void on(const model::DrainOver& event, Instant now, flow::Actions& out);
  void on(const model::Tick& event, Instant now, flow::Actions& out);
  void began(model::RequestId id, model::AttemptId attempt, Instant now);
  void failed(model::RequestId id, Request& request, const model::AttemptEnded& event, Instant now,
              flow::Actions& out);
  void abort(model::RequestId id, Request& request, Instant now, flow::Actions& out);
  void conclude(model::RequestId id, model::Outcome outcome, model::Conclude::Answer answer,
                Duration retry_after, flow::Actions& out);
  std::vector<model::RequestId> in_order() const;

  // peer_place.cc
  model::ModelId target(model::RouteId route);
  Placed place(model::RequestId id, Request& request, Instant now, flow::Actions& out);
  void settle(Placed placed, model::RequestId id, flow::Actions& out);
  void dispatch(model::RequestId id, Request& request, const peers::Query& query,
                const peers::Choice& choice, Instant now, flow::Actions& out);
  bool retry_later(model::RequestId id, Request& request, Instant now);
  void drain_queue(Instant now, flow::Actions& out);
  void find_candidates(const Request& request, Instant now);
  bool left_out(const Watch& watch, Instant now) const;
  void unbook(model::RequestId id, Request& request, std::int64_t output, Instant now);
  void prefilled(Request& request);
  peers::Flight flight(model::RequestId id, const Request& request, std::int64_t output) const;
  void judge(Slot slot, model::AttemptResult result, Instant now);

  // peer_fleet.cc
  void join(const model::Endpoint& endpoint, model::ModelId model);
  void leave(Slot slot, Instant now);
  Slot free_slot();

  std::unique_ptr<peers::Rule> rule_;
  peers::Traits traits_;
  Rng rng_;        // the rule's choices
  Rng route_rng_;  // targets of routes, back-off

  std::shared_ptr<const model::Fleet> fleet_;
  std::vector<peers::Seen> seen_;  // by slot
  std::vector<Watch> watches_;
  std::map<model::EndpointId, Slot> slots_;
  std::map<model::EndpointId, peers::Profile> profiles_;
  std::set<std::int64_t> block_sizes_;

  Requests requests_;
  std::unordered_map<model::RequestId, Request> asked_;  // before they arrive
  std::set<std::pair<Instant, model::RequestId>> retries_;
  std::deque<model::RequestId> queue_;
  bool queue_moves_ = false;       // something ended or came that the queue may wait for
  bool draining_ = false;

  flow::Totals totals_;
  std::uint64_t running_ = 0;
  std::vector<Slot> candidates_;
  std::vector<std::span<const peers::Piece>> block_spans_;
};

}  // namespace signalbox::sim
