// SPDX-License-Identifier: Apache-2.0
// The passes of a decision, the loop over bounds, and the choice among near-ties.
#include "core/routing/search.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>

#include "base/check.h"
#include "core/routing/decide.h"

namespace signalbox::routing {
namespace {

// Places that hold less than hoped, after which marking the holders is cheaper than going on.
constexpr int kDisappointmentsMax = 12;
// Bounds of closed places are infinite or not a number.
constexpr float kFarthest = 1e29f;
// An explanation compares with something: all places of a small fleet are scored, of a large one
// the best by bound beside the chosen, even where bounds show that they cannot win.
constexpr std::size_t kShownWhole = 8;
constexpr std::size_t kShown = 2;

}  // namespace

std::string_view label(Reason reason) {
  switch (reason) {
    case Reason::Role: return "role";
    case Reason::Tenant: return "tenant";
    case Reason::Lora: return "lora";
    case Reason::OtherModel: return "other_model";
    case Reason::Draining: return "draining";
    case Reason::Asleep: return "asleep";
    case Reason::Ejected: return "ejected";
    case Reason::Full: return "full";
    case Reason::Memory: return "memory";
    case Reason::AlreadyTried: return "already_tried";
  }
  return "unknown";
}

Decision decide(State& state, const Query& query, Instant now, Rng& rng) {
  return Search(state, query, now, rng).run();
}

Search::Search(State& state, const Query& query, Instant now, Rng& rng)
    : state_(state), query_(query), rng_(rng), now_(now) {
  state_.rebase(now);
  salt_ = rng.next();
  const double growth = state_.growth(now);
  decision_.ask = state_.ask(query, growth);
  constants_ = constants(decision_.ask);
  need_ = decision_.ask.prompt + decision_.ask.output;
  now_seconds_ = to_seconds(now.time_since_epoch());
  decay_ = state_.decay(query, growth);
  output_ = static_cast<std::int64_t>(decision_.ask.output);

  // Overlap is concave in L, so a chord between two known points lies below it.
  const auto length = static_cast<float>(output_);
  constexpr auto low = static_cast<float>(kShortOutput);
  constexpr auto high = static_cast<float>(kLongOutput);
  const float part = std::clamp((length - low) / (high - low), 0.0f, 1.0f);
  constexpr float rounding = 1 - 1e-6f;
  overlap_short_ = length < low ? length / low * rounding : (1 - part) * rounding;
  overlap_long_ = part * rounding;
}

Decision Search::run() {
  prepare_levels();
  collect_buckets();
  decision_.kind = Decision::Kind::Place;
  if (place(Side::Open, Tried::Avoid)) return decision_;
  if (any_full(Tried::Avoid)) {
    decision_.kind = Decision::Kind::Wait;
    return decision_;
  }
  // What has failed others may have recovered; what has failed this very request just now has not.
  if (query_.ejected_allowed) {
    decision_.ejected = true;
    if (place(Side::Ejected, Tried::Avoid)) return decision_;
    decision_.ejected = false;
  }
  if (!query_.tried.empty()) {
    decision_.retried = true;
    if (place(Side::Open, Tried::Allow)) return decision_;
    decision_.ejected = query_.ejected_allowed;
    if (query_.ejected_allowed && place(Side::Ejected, Tried::Allow)) return decision_;
    decision_.ejected = decision_.retried = false;
  }
  decision_.kind = any_full(Tried::Allow) ? Decision::Kind::Wait : Decision::Kind::None;
  return decision_;
}

// One pass over one side of the buckets; true if it found a place.
bool Search::place(Side side, Tried tried) {
  side_ = side;
  tried_ = tried;
  number_ = ++state_.decisions_;
  count_ = near_ = marked_ = first_level_ = 0;
  limit_ = kFarthest;
  enough_ = false;
  disappointed_ = 0;
  state_.trees_.clear();
  for (const model::PoolId pool : query_.pools) {
    if (pool.value() >= state_.buckets_of_pool_.size()) continue;
    for (const std::uint32_t number : state_.buckets_of_pool_[pool.value()]) {
      State::Bucket& bucket = *state_.buckets_[number];
      Reason why{};
      if (!admits(bucket, why)) continue;
      bucket.admitted_in = number_;
      Index& index = side == Side::Open ? bucket.open : bucket.ejected;
      const float money =
          decision_.ask.seconds_per_usd * static_cast<float>(bucket.facts.usd_per_second);
      if (index.size() > 0) state_.trees_.push_back({&bucket, &index, money});
    }
  }
  places_ = 0;
  for (const State::Tree& tree : state_.trees_) places_ += tree.index->size();
  wanted_ = places_ <= kShownWhole ? places_ : kShown;
  score_deepest_holders();
  search_trees();
  if (count_ == 0) return false;
  choose();
  return true;
}

// Whether a place with these bounds could be better than the best, a near-tie still wanted, or
// something to compare with.
bool Search::worthwhile(float violation, float total) const {
  if (!(total < kFarthest)) return false;
  if (count_ < wanted_) return true;
  const Kept& best = kept_[0];
  if (violation < best.violation) return true;
  if (violation == best.violation && total < best.total) return true;
  const float band = 1 + decision_.ask.tie_band;
  return !enough_ &&
         violation <= best.violation * band && total < best.total * band;
}

// Best first; until enough near-ties have been scored, straight down instead, since a good score in
// hand spares most of the bounds that follow. A child that is the best of all is not queued.
void Search::search_trees() {
  auto& heap = state_.heap_;
  Children children;
  bool again = true;
  while (again) {
    again = false;
    heap.clear();
    for (std::uint32_t tree = 0; tree < state_.trees_.size(); ++tree) {
      const std::size_t count = expand(tree, state_.trees_[tree].index->root(), children);
      for (std::size_t i = 0; i < count; ++i) push(children[i]);
    }
    State::Entry next{};
    bool holding = false;
    while (!again && (holding || !heap.empty())) {
      if (!holding) {
        next = heap.front();
        std::ranges::pop_heap(heap, std::greater<>{});
        heap.pop_back();
      }
      holding = false;
      if (!worthwhile(next.violation(), next.total())) break;
      if (next.level() == 0) {
        again = visit(next.tree(), next.number());
        continue;
      }
      const bool leaf = next.level() == 1;
      const auto end = children.begin() +
                       static_cast<std::ptrdiff_t>(expand(next.tree(), next.number(), children));
      auto first = children.begin();
      if (first == end) continue;
      if (leaf && !enough_) {
        std::sort(first, end);
        for (; first != end && !enough_ && !again; ++first) {
          if (worthwhile(first->violation(), first->total())) {
            again = visit(first->tree(), first->number());
          }
        }
        for (; first != end; ++first) push(*first);
        continue;
      }
      const auto best = std::min_element(first, end);
      for (; first != end; ++first) {
        if (first != best) push(*first);
      }
      next = *best;
      holding = !enough_ || heap.empty() || next < heap.front();
      if (!holding) push(next);
    }
  }
}

void Search::push(const State::Entry& entry) {
  state_.heap_.push_back(entry);
  std::ranges::push_heap(state_.heap_, std::greater<>{});
}

// Scores one place of a tree; true if the search should start again with another level marked.
bool Search::visit(std::uint32_t tree, std::uint32_t position) {
  const Index& index = *state_.trees_[tree].index;
  Seat& seat = state_.seats_[index.owner(position)];
  if (seat.scored_in == number_) return false;
  std::uint8_t marks = 0;
  if (marked_ > 0) marks = index.marks(position / Index::kFan)[position % Index::kFan];
  const std::size_t hoped = hoped_level(marks);
  const std::size_t held = held_level(seat.id, marks);
  score_seat(seat, held);
  if (held == hoped || ++disappointed_ < kDisappointmentsMax) return false;
  return mark_next_level();
}

void Search::score_seat(Seat& seat, std::size_t level) {
  seat.scored_in = number_;
  if (need_ > seat.fit) return;
  if (tried_ == Tried::Avoid && was_tried(seat.id)) return;
  Inputs inputs = state_.load_inputs(seat, now_, decay_, need_, output_);
  inputs.cached = state_.levels_[level].cached;
  const Parts<float> parts =
      predict(constants_, routing::place(decision_.ask, inputs), state_.levels_[level].share);
  ++decision_.evaluated;
  keep(inputs, parts);
}

void Search::keep(const Inputs& inputs, const Parts<float>& parts) {
  Kept entry{parts.violation, parts.total, inputs.endpoint, 0};
  const auto before = [](const Kept& a, const Kept& b) {
    if (a.violation != b.violation) return a.violation < b.violation;
    if (a.total != b.total) return a.total < b.total;
    return a.endpoint < b.endpoint;
  };
  if (count_ == kept_.size()) {
    if (!before(entry, kept_.back())) return;
    entry.slot = kept_.back().slot;
  } else {
    entry.slot = static_cast<std::uint8_t>(count_++);
  }
  std::size_t i = count_ - 1;
  for (; i > 0 && before(entry, kept_[i - 1]); --i) kept_[i] = kept_[i - 1];
  kept_[i] = entry;
  decision_.candidates[entry.slot] = inputs;

  const float band = 1 + decision_.ask.tie_band;
  near_ = 1;
  while (near_ < count_ && kept_[near_].violation <= kept_[0].violation * band &&
         kept_[near_].total <= kept_[0].total * band) {
    ++near_;
  }
  if (count_ < wanted_) return;
  enough_ = near_ >= static_cast<std::size_t>(state_.config_.near_ties_wanted);
  limit_ = kept_[0].violation > 0 ? kFarthest : kept_[0].total * (enough_ ? 1 : band);
}

// Two of the near-tied are drawn without replacement, each pair alike; the better one is chosen.
void Search::choose() {
  std::array<Inputs, Decision::kCandidatesMax> sorted;
  for (std::size_t i = 0; i < count_; ++i) sorted[i] = decision_.candidates[kept_[i].slot];
  std::copy_n(sorted.begin(), count_, decision_.candidates.begin());
  std::size_t chosen = 0;
  if (near_ > 1) {
    const std::size_t one = rng_.below(near_);
    std::size_t other = rng_.below(near_ - 1);
    if (other >= one) ++other;
    chosen = std::min(one, other);
  }
  decision_.count = static_cast<std::uint8_t>(count_);
  decision_.near_ties = static_cast<std::uint8_t>(near_);
  decision_.chosen = static_cast<std::uint8_t>(chosen);
  decision_.endpoint = kept_[chosen].endpoint;
  decision_.objective_missed = kept_[chosen].violation > 0;
}

}  // namespace signalbox::routing
