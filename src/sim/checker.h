// SPDX-License-Identifier: Apache-2.0
// Watches a decider from outside: after every event its state has to be what the events and actions
// so far allow. Shares no code with what it checks; the grammar is checked beside it.
//
//   INV-1   arrived = Σ outcomes + in flight; one Conclude per request
//   INV-2   one running attempt per request, and none after bytes went to the client
//   grammar no event or action is illegal
//
// and of our own core, whose promises others do not make:
//
//   INV-3   nothing in flight: every count, claim and reserve is zero
//   INV-4   the books agree (books.h)
//   INV-8   queue, tables and concurrency within their limits
//   INV-10  nobody waits beside a free endpoint
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>

#include "core/flow/flow.h"
#include "core/model/grammar_checker.h"
#include "sim/books.h"
#include "sim/decider.h"
#include "sim/trail.h"

namespace signalbox::sim {

class Checker {
 public:
  // `ours`: whether our core decides, and its own promises are checked as well.
  Checker(std::uint64_t seed, bool ours) : seed_(seed), ours_(ours) {}

  // Before the core sees it.
  void applied(const flow::Setup& setup, Instant now);
  void event(const model::Event& event, Instant now);
  // Each action, in order.
  void action(const model::OwnedAction& action, Instant now);
  // When the actions are known. Every hundredth time everything is compared, else what is cheap.
  void after(const Decider& decider, Instant now);
  // At the end of the run, with nothing in flight.
  void finish(const Decider& decider, Instant now);

  // Others' findings, with the same report.
  void violated(const std::string& what, Instant now);

  bool clean() const { return violation_.empty(); }
  // Seed, time, event and what led to it; empty: none.
  const std::string& violation() const { return violation_; }
  std::size_t open() const { return open_.size(); }
  const Books& books() const { return books_; }

 private:
  struct Open {
    std::uint16_t owner = 0;
    Instant arrived{};
    bool gone = false;
    bool delivered = false;
    model::AttemptId attempt;    // the newest
    model::EndpointId endpoint;  // 0: none runs
    Instant sent{};
    std::uint64_t lora = 0;
    std::uint64_t decision = 0;  // of the newest attempt
    bool begun = false;          // it has shown its first token
    Instant first{};             // then
    bool failed = false;         // the newest attempt has ended, and not well
    bool passes = false;         // and its answer may be passed on
  };

  void take(const model::RequestArrived& e, Instant now);
  void take(const model::ClientGone& e);
  void take(const model::FirstToken& e, Instant now);
  void take(const model::AttemptEnded& e, Instant now);
  void take(const model::Dispatch& a, Open& open, Instant now);
  void take(const model::Abort& a, Open& open, Instant now);
  void take(const model::Conclude& a, Open& open, Instant now);
  void check_counts(const Decider& decider, Instant now);
  void check_ledger(const flow::Flow& core, Instant now);
  void check_story(const flow::Flow& core, Instant now);
  void check_limits(const flow::Totals& totals, const flow::Flow& core, Instant now);
  void check_rest(const flow::Flow& core, Instant now);
  void finish_core(const flow::Flow& core, Instant now);
  void take_failure(model::EndpointId endpoint, model::AttemptResult result, Instant now);
  bool rests(model::EndpointId endpoint, Instant now) const;
  void check_flow_of_waiting(const flow::Flow& core, Instant now);

  std::uint64_t seed_;
  bool ours_;
  Trail trail_;
  Books books_;
  model::GrammarChecker grammar_;
  std::shared_ptr<const model::Fleet> fleet_;
  std::map<model::EndpointId, const model::Endpoint*> declared_;  // of fleet_
  std::map<model::EndpointId, int> running_;
  std::set<model::EndpointId> asleep_;      // as their last look told
  struct Row {
    Instant since{};
    Instant last{};
  };
  std::map<model::EndpointId, Row> failing_;  // failures in a row, without a token between
  std::unordered_map<model::RequestId, Open> open_;
  std::array<std::uint64_t, model::kOutcomes.size()> outcomes_{};
  std::optional<Open> ended_;            // whose attempt ended with the present event
  std::uint64_t arrived_ = 0;
  std::uint64_t calls_ = 0;
  std::int64_t queue_requests_max_ = 0;  // greatest that was ever allowed
  std::int64_t queue_bytes_max_ = 0;
  Duration held_longest_{};              // by settings of dispatch
  Duration ejection_{};                  // longest of the settings
  std::int64_t in_flight_max_ = 0;       // as at the start
  std::int64_t index_bytes_max_ = 0;
  Instant idle_capacity_since_ = kNever; // requests wait and one pool could serve, and none of
                                         // them goes, since then
  std::string violation_;
};

}  // namespace signalbox::sim
