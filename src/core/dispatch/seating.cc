// SPDX-License-Identifier: Apache-2.0
// Greedy seats; a rank is found by a walk, since an instance has few.
#include "core/dispatch/seating.h"

#include <algorithm>
#include <numeric>

namespace signalbox::dispatch {

Seating::Seating(const Instance& instance, std::vector<Departure>& out)
    : instance_(instance), out_(out) {}

bool Seating::seated(std::size_t passenger) const {
  return passenger < seated_.size() && seated_[passenger];
}

double Seating::tokens_left() const {
  double left = 0;
  for (const Rank& r : instance_.ranks) left += std::max(0.0, instance_.chunk_tokens - r.tokens);
  return left;
}

// A prompt longer than a chunk goes on in later passes, so it wants a rank of its own.
bool Seating::fits(std::size_t rank, const Passenger& p) const {
  const double taken = instance_.ranks[rank].tokens;
  return taken <= 0 || taken + p.tokens_on(rank) <= instance_.chunk_tokens;
}

std::size_t Seating::shortest(const Passenger& p) const {
  const std::size_t none = instance_.ranks.size();
  std::size_t best = none;
  double least = 0;
  for (std::size_t i = 0; i < none; ++i) {
    if (!fits(i, p)) continue;
    const double done = instance_.ranks[i].seconds + p.seconds_on(i);
    if (best != none && done >= least) continue;
    best = i;
    least = done;
  }
  return best;
}

void Seating::take(std::size_t rank, std::span<const Passenger> line, std::size_t passenger) {
  instance_.compute(rank, line[passenger].tokens_on(rank), line[passenger].context_on(rank));
  if (seated_.size() < line.size()) seated_.resize(line.size());
  seated_[passenger] = true;
  out_.push_back({static_cast<std::uint32_t>(passenger), static_cast<std::uint32_t>(rank)});
}

void Seating::seat(std::span<const Passenger> line, std::size_t count) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
    const double x = line[a].least_seconds(), y = line[b].least_seconds();
    return x != y ? x > y : a < b;
  });
  for (const std::size_t i : order) {
    const std::size_t rank = shortest(line[i]);
    if (rank < instance_.ranks.size()) take(rank, line, i);
  }
}

void Seating::fill_free_seats(std::span<const Passenger> line, std::size_t from) {
  double length = 0;
  for (const Rank& r : instance_.ranks) length = std::max(length, r.seconds);
  for (std::size_t i = from; i < line.size(); ++i) {
    if (seated(i)) continue;
    const std::size_t rank = shortest(line[i]);
    if (rank == instance_.ranks.size()) continue;
    if (instance_.ranks[rank].seconds + line[i].seconds_on(rank) <= length) take(rank, line, i);
  }
}

void Seating::fill_up(std::span<const Passenger> line, std::size_t from) {
  for (std::size_t i = from; i < line.size(); ++i) {
    if (seated(i)) continue;
    const std::size_t rank = shortest(line[i]);
    if (rank < instance_.ranks.size()) take(rank, line, i);
  }
  std::size_t next = from;
  for (std::size_t rank = 0; rank < instance_.ranks.size(); ++rank) {
    if (instance_.ranks[rank].tokens >= instance_.chunk_tokens) continue;
    while (next < line.size() && seated(next)) ++next;
    if (next == line.size()) return;
    take(rank, line, next);
  }
}

}  // namespace signalbox::dispatch
