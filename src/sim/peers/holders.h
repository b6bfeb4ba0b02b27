// SPDX-License-Identifier: Apache-2.0
// Who holds which piece of which prompt: a bit per slot for each hash. The lookup walks a prompt
// once for all slots together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/peers/query.h"

namespace signalbox::peers {

class Holders {
 public:
  static constexpr std::size_t kSlotsMax = 4096;

  Holders();

  void add(std::uint64_t hash, Slot slot);
  void remove(std::uint64_t hash, Slot slot);
  void clear(Slot slot);  // O(table)
  bool holds(std::uint64_t hash, Slot slot) const;

  // tokens[slot] becomes the end of the deepest piece that the slot holds together with all pieces
  // before it; 0: not even the first.
  void match(std::span<const Piece> pieces, std::span<std::int64_t> tokens) const;

  std::size_t size() const { return size_; }  // hashes that somebody holds

 private:
  // A cell: the hash (0: empty), then width_ words of bits.
  std::size_t home(std::uint64_t hash) const;
  std::size_t next(std::size_t cell) const { return (cell + 1) & (cells_ - 1); }
  std::uint64_t& key(std::size_t cell) { return data_[cell * (1 + width_)]; }
  std::uint64_t key(std::size_t cell) const { return data_[cell * (1 + width_)]; }
  std::uint64_t* bits(std::size_t cell) { return &data_[cell * (1 + width_) + 1]; }
  const std::uint64_t* find(std::uint64_t hash) const;
  void prefetch(std::uint64_t hash) const {
    __builtin_prefetch(&data_[home(hash) * (1 + width_)]);
  }
  void erase(std::size_t cell);
  void rebuild(std::size_t cells, std::size_t width);

  std::size_t cells_ = 64;  // a power of two
  std::size_t width_ = 1;
  std::size_t size_ = 0;
  std::vector<std::uint64_t> data_;
};

}  // namespace signalbox::peers
