// SPDX-License-Identifier: Apache-2.0
// Hold, order, cut, seat, fill.
#include "core/dispatch/shuttle.h"

#include <algorithm>

#include "base/check.h"
#include "core/dispatch/late.h"

namespace signalbox::dispatch {
namespace {

// Of a pass's room, what those depart with who do not fill it: a third is the rule's own mean
// (docs/results/shuttle.md).
constexpr double kUsualFill = 1.0 / 3;

}  // namespace

std::string_view label(Why why) {
  switch (why) {
    case Why::Nobody: return "nobody";
    case Why::Filling: return "filling";
    case Why::Departs: return "departs";
  }
  return "unknown";
}

bool leaves_home(const Config& config, double home_busy, double extra_prefill, std::size_t waiting,
                 std::size_t ranks) {
  const double crowd = 1 + static_cast<double>(waiting) / static_cast<double>(ranks);
  return home_busy > config.home_patience * extra_prefill * crowd;
}

// A pass whose seats are mostly free may wait for its turn among the instances, the longer the more
// of it would stay empty, but never past the first objective that waiting would break.
Instant Shuttle::held_until(std::span<const Passenger> waiting, const Instance& instance,
                            const Rhythm& rhythm) const {
  const auto ranks = static_cast<double>(instance.ranks.size());
  double tokens = 0, seconds = 0, longest = 0;
  Instant latest = kNever;
  Instant first = kNever;
  for (const Passenger& p : waiting) {
    tokens += p.least_tokens();
    seconds += p.least_seconds();
    longest = std::max(longest, p.least_seconds());
    latest = std::min(latest, p.latest);
    first = std::min(first, p.since);
  }
  if (tokens >= config_.full_share * ranks * instance.chunk_tokens || !(longest > 0)) return first;
  const double free = std::max(0.0, 1 - seconds / (ranks * longest));
  const double turn = to_seconds(rhythm.pass) / std::max(1, rhythm.instances);
  return std::min({rhythm.last_departure + from_seconds(free * turn), latest,
                   first + config_.hold_max});
}

const Shuttle::Plan& Shuttle::plan(std::span<const Passenger> waiting, const Instance& instance,
                                   const Rhythm& rhythm, Instant now) {
  CHECK(!instance.ranks.empty() && instance.chunk_tokens > 0);
  plan_.departures.clear();
  plan_.until = kNever;
  plan_.line.assign(waiting.begin(), waiting.end());
  plan_.why = Why::Nobody;
  if (waiting.empty()) return plan_;
  plan_.until = held_until(waiting, instance, rhythm);
  if (now < plan_.until) {
    plan_.why = Why::Filling;
    return plan_;
  }
  plan_.until = kNever;
  plan_.why = Why::Departs;
  std::ranges::sort(plan_.line, [&](const Passenger& a, const Passenger& b) {
    const Instant x = turn(config_, a.since, a.least_seconds());
    const Instant y = turn(config_, b.since, b.least_seconds());
    return x != y ? x < y : a.request < b.request;
  });
  if (plan_.line.size() > kLineMax) plan_.line.resize(kLineMax);

  const std::size_t count = partition_.first_pass(plan_.line, instance);
  Seating seating(instance, plan_.departures);
  seating.seat(plan_.line, count);
  seating.fill_free_seats(plan_.line, 0);
  double left = 0;
  for (std::size_t i = 0; i < plan_.line.size(); ++i) {
    if (!seating.seated(i)) left += plan_.line[i].least_tokens();
  }
  // Before this instance is free again, the others depart, too; is there more for it even so?
  const double others = kUsualFill * (std::max(1, rhythm.instances) - 1);
  if (left >= seating.tokens_left() * (1 + others)) seating.fill_up(plan_.line, 0);
  return plan_;
}

}  // namespace signalbox::dispatch
