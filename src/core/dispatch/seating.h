// SPDX-License-Identifier: Apache-2.0
// Who sits on which rank of a pass: the longest first, each where it would be done first (longest
// processing time first, Graham 1969: at most 4/3 of the shortest possible pass), whole requests
// within a rank's chunk. The rank that holds its prefix has less to do for it, and no other
// privilege. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/dispatch/pass.h"

namespace signalbox::dispatch {

struct Departure {
  std::uint32_t passenger = 0;  // position in the line
  std::uint32_t rank = 0;
};

class Seating {
 public:
  // Begins a pass with what the ranks have left; their tokens and seconds then grow with each seat
  // taken. `out` is appended to and must outlive the other calls.
  Seating(const Instance& instance, std::vector<Departure>& out);

  // Of the first `count` in line; who fits on no rank stays.
  void seat(std::span<const Passenger> line, std::size_t count);
  // Of those behind them, in order: whoever makes the pass no longer.
  void fill_free_seats(std::span<const Passenger> line, std::size_t from);
  // Of those behind them, in order: every rank to its chunk, then one more on each that goes on in
  // the pass after. For a line that fills the pass anyhow.
  void fill_up(std::span<const Passenger> line, std::size_t from);

  bool seated(std::size_t passenger) const;
  double tokens_left() const;  // room within the chunks

 private:
  bool fits(std::size_t rank, const Passenger& p) const;
  void take(std::size_t rank, std::span<const Passenger> line, std::size_t passenger);
  // The rank that would be done first with it, of those with room for it; ranks.size(): none.
  std::size_t shortest(const Passenger& p) const;

  const Instance& instance_;
  std::vector<Departure>& out_;
  std::vector<bool> seated_;
};

}  // namespace signalbox::dispatch
