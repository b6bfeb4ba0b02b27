// SPDX-License-Identifier: Apache-2.0
// The latest decisions with what came of them: predicted against actual, for `explain` and the
// admin API. A request that found no place has one that says why; one that had to wait, two. A ring
// of fixed size; under the core's lock.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <span>
#include <vector>

#include "base/time.h"
#include "core/model/event.h"
#include "core/model/fleet.h"
#include "core/model/ids.h"
#include "core/model/outcome.h"
#include "core/routing/decision.h"

namespace signalbox::flow {

struct DecisionRecord {
  std::uint64_t number = 0;        // from 1, in the order of the decisions
  model::RequestId request;
  model::AttemptId attempt;        // 0: it was not sent
  model::RouteId route;
  model::ModelId model;
  model::TenantId tenant;
  Instant at{};
  Duration queued{};
  bool queue_full = false;         // it could not wait here for what was full
  // Otherwise than Immediate: it has a place, and stays here until then.
  model::DispatchMode held = model::DispatchMode::Immediate;
  int boarded = 0;                 // by shuttle: requests that departed for the same pass
  double pass_seconds = 0;         // how long it is predicted to take
  routing::Decision decision;
  double ttft_predicted = 0;       // s
  double e2e_predicted = 0;        // s
  double stretch = 1;              // in it: its decode steps are expected to take so much longer
  std::int64_t cached_predicted = 0;
  bool over = false;               // the attempt has ended: the fields below are final
  model::AttemptResult result = model::AttemptResult::Ok;
  Duration ttft{-1};               // since the dispatch; negative: no first token
  Duration e2e{-1};
  model::Usage usage;
};

class DecisionRing {
 public:
  explicit DecisionRing(std::size_t capacity) : capacity_(capacity > 0 ? capacity : 1) {}

  // Asks the memory for the place of the next record, which nobody has touched since the ring went
  // round: so that add() need not wait for it. Worth calling a microsecond earlier.
  void prepare() const;
  // A fresh record under the next number, in the place of the oldest. Its `decision` is `decision`;
  // only the candidates that it has are copied.
  DecisionRecord& add(const routing::Decision& decision);
  // Null when the number is forgotten or was never given.
  DecisionRecord* find(std::uint64_t number);
  const DecisionRecord* find(std::uint64_t number) const;
  // The decisions still known of one request, or of several, oldest first. Looks at all there are.
  std::vector<const DecisionRecord*> of(model::RequestId request) const;
  std::vector<const DecisionRecord*> of(std::span<const model::RequestId> requests) const;
  // Number of the newest decision that is no longer known; 0: none is forgotten.
  std::uint64_t forgotten() const { return last_ > ring_.size() ? last_ - ring_.size() : 0; }
  // The latest, newest first, at most `count`.
  std::vector<const DecisionRecord*> latest(std::size_t count) const;

 private:
  std::size_t capacity_;  // at least 1
  std::uint64_t last_ = 0;
  std::vector<DecisionRecord> ring_;
};

}  // namespace signalbox::flow
