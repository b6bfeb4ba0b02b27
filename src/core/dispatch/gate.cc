// SPDX-License-Identifier: Apache-2.0
// A pass is over when the first of those whose prompts end in it has a token.
#include "core/dispatch/gate.h"

#include <algorithm>
#include <cmath>

namespace signalbox::dispatch {
namespace {

// Of the predicted length: when the gate of a pass that starts into the next opens, and when one
// whose first tokens do not come is given up.
constexpr double kEarly = 0.7;
constexpr double kFarTooLate = 3;
constexpr Duration kLateAtLeast = std::chrono::milliseconds(100);

}  // namespace

void Gate::depart(Instant now, Duration length, double chunk_tokens,
                  std::span<const Aboard> boarded) {
  if (!announced(now)) {
    begins_ = over_ ? now : std::max(now, begins_ + length_);
    compute_a_pass(aboard_);
    ++pass_;
  }
  over_ = false;
  length_ = length;
  chunk_tokens_ = chunk_tokens;
  for (const Aboard& a : boarded) {
    aboard_.push_back(a);
    aboard_.back().first_pass = pass_;
    // Its rank may still be at what boarded before.
    double ahead = 0;
    for (const Aboard& b : aboard_) ahead += b.rank == a.rank ? b.tokens : 0;
    const double passes = std::max(1.0, std::ceil(ahead / chunk_tokens_));
    aboard_.back().last_pass = pass_ + static_cast<std::uint64_t>(passes) - 1;
  }
}

std::optional<Duration> Gate::computed(model::RequestId request, model::AttemptId attempt,
                                       Instant now) {
  const auto found = std::ranges::find_if(aboard_, [&](const Aboard& a) {
    return a.request == request && a.attempt == attempt;
  });
  if (found == aboard_.end()) return std::nullopt;
  // Who goes on from an earlier pass may have been done in it, a little later than predicted.
  const bool early = found->first_pass < pass_ && 2 * (now - begins_) < length_;
  const bool ends = !over_ && found->last_pass >= pass_ && !early;
  // The last of the pass before: this is when the present one began.
  if (!over_ && !ends && found->first_pass == found->last_pass && found->last_pass + 1 == pass_) {
    begins_ = std::min(begins_, now);
  }
  aboard_.erase(found);
  if (!ends) return std::nullopt;
  over_ = true;
  // The others of this pass come at the same moment.
  std::erase_if(aboard_, [&](const Aboard& a) { return a.last_pass <= pass_; });
  return now - begins_;
}

void Gate::left(model::RequestId request, model::AttemptId attempt) {
  std::erase_if(aboard_, [&](const Aboard& a) {
    return a.request == request && a.attempt == attempt;
  });
  if (aboard_.empty()) over_ = true;
}

bool Gate::goes_on() const {
  return std::ranges::any_of(aboard_, [&](const Aboard& a) { return a.last_pass > pass_; });
}

Instant Gate::opens_at() const {
  if (over_) return begins_;
  if (goes_on()) return begins_ + from_seconds(kEarly * to_seconds(length_));
  const bool told = std::ranges::any_of(
      aboard_, [&](const Aboard& a) { return !a.silent && a.last_pass == pass_; });
  if (!told) return begins_ + length_;
  return begins_ + std::max(from_seconds(kFarTooLate * to_seconds(length_)),
                              length_ + kLateAtLeast);
}

Duration Gate::busy(Instant now) const {
  return over_ ? Duration::zero() : std::max(Duration::zero(), begins_ + length_ - now);
}

Duration Gate::begins_in(Instant now) const {
  if (announced(now)) return begins_ - now;
  if (over_) return Duration::zero();
  return std::chrono::abs(begins_ + length_ - now);
}

int Gate::passes_to_come(Instant now) const {
  const std::uint64_t next = announced(now) ? pass_ : pass_ + 1;
  std::uint64_t last = next;
  for (const Aboard& a : aboard_) last = std::max(last, a.last_pass + 1);
  return static_cast<int>(last - next);
}

// Every rank computes a chunk, in the order of boarding.
void Gate::compute_a_pass(std::vector<Aboard>& aboard) const {
  for (std::size_t i = 0; i < aboard.size(); ++i) {
    Aboard& a = aboard[i];
    if (a.tokens <= 0) continue;
    double room = chunk_tokens_;
    for (std::size_t j = 0; j < i; ++j) room -= aboard[j].rank == a.rank ? aboard[j].room_taken : 0;
    a.room_taken = std::clamp(room, 0.0, a.tokens);
  }
  for (Aboard& a : aboard) {
    a.tokens -= a.room_taken;
    a.context += a.room_taken;
    a.room_taken = 0;
  }
}

void Gate::add_left_over(const Instance& instance, Instant now) const {
  const bool announced = this->announced(now);
  if (!announced && !goes_on()) return;
  std::vector<Aboard> aboard = aboard_;
  if (!announced) compute_a_pass(aboard);
  const std::uint64_t next = announced ? pass_ : pass_ + 1;
  for (const Aboard& a : aboard) {
    if (a.last_pass < next || a.rank >= instance.ranks.size()) continue;
    instance.compute(a.rank, a.tokens, a.context);
  }
}

}  // namespace signalbox::dispatch
