// SPDX-License-Identifier: Apache-2.0
// One search for the best place: best first over the bounds of all buckets, until no bound beats
// the best found. Lives for one decision; works on State under the core lock.
//
// Cached tokens: a few deepest holders of the prefix are scored at once. Every other place is first
// bounded as if it held the next level; where that proves too hopeful, the holders of that level
// are marked in the indices and the bounds become exact in this respect.
#pragma once

#include <array>
#include <cstdint>

#include "base/rng.h"
#include "core/routing/decision.h"
#include "core/routing/formula.h"
#include "core/routing/query.h"
#include "core/routing/state.h"

namespace signalbox::routing {

class Search {
 public:
  Search(State& state, const Query& query, Instant now, Rng& rng);

  Decision run();

 private:
  enum class Side : std::uint8_t { Open, Ejected };
  enum class Tried : std::uint8_t { Avoid, Allow };

  // A scored place that is kept for the choice and its explanation.
  struct Kept {
    float violation;
    float total;
    model::EndpointId endpoint;
    std::uint8_t slot;  // in decision_.candidates, before they are sorted
  };

  // search.cc: the passes and the choice.
  bool place(Side side, Tried tried);
  bool worthwhile(float violation, float total) const;
  void search_trees();
  void push(const State::Entry& entry);
  bool visit(std::uint32_t tree, std::uint32_t position);
  void score_seat(Seat& seat, std::size_t level);
  void keep(const Inputs& inputs, const Parts<float>& parts);
  void choose();

  // bounds.cc: lower bounds of nodes.
  using Children = std::array<State::Entry, Index::kFan>;
  std::size_t expand(std::uint32_t tree, std::uint32_t node, Children& children);
  State::Entry entry(std::uint32_t tree, int level, std::uint32_t number, float violation,
                     float total) const;

  // holders.cc: who holds what of the prompt.
  void prepare_levels();
  void score_deepest_holders();
  bool mark_next_level();
  std::size_t hoped_level(std::uint8_t marks) const;
  std::size_t held_level(model::EndpointId id, std::uint8_t marks) const;

  // refusals.cc: who may serve at all.
  void collect_buckets();
  bool admits(const State::Bucket& bucket, Reason& why) const;
  void count_refusals(State::Bucket& bucket);
  void refuse(Reason reason, int count, model::EndpointId example);
  model::EndpointId example(const State::Bucket& bucket, Standing standing) const;
  bool any_full(Tried tried) const;
  bool was_tried(model::EndpointId id) const;

  State& state_;
  const Query& query_;
  Rng& rng_;
  Instant now_;
  Decision decision_;
  Constants constants_{};
  float need_ = 0;             // prompt + output
  double now_seconds_ = 0;
  float decay_ = 1;            // of arrival rates since the base time, others' share included
  std::int64_t output_ = 1;
  float overlap_short_ = 0;    // overlap is at least short·kOverlapShort + long·kOverlapLong
  float overlap_long_ = 0;
  std::uint64_t salt_ = 0;     // orders equal bounds differently each time
  std::uint64_t number_ = 0;   // of this pass

  std::size_t levels_ = 0;       // of the match; state_.levels_ has one more: nothing cached
  std::size_t first_level_ = 0;  // the deepest one whose holders were not all scored at once
  std::size_t places_ = 0;       // in the trees of this pass
  std::size_t wanted_ = 0;       // places to score before any bound prunes
  std::size_t marked_ = 0;       // levels marked, from first_level_ on
  int disappointed_ = 0;         // places that held less than was hoped, since the last mark

  Side side_ = Side::Open;
  Tried tried_ = Tried::Avoid;
  std::array<Kept, Decision::kCandidatesMax> kept_;
  std::size_t count_ = 0;
  std::size_t near_ = 0;         // leading ones within the tie band
  bool enough_ = false;          // near-ties
  float limit_ = 0;              // scores from here on are not worthwhile, unless the best violates
};

}  // namespace signalbox::routing
