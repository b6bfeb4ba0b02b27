// SPDX-License-Identifier: Apache-2.0
// Open addressing with linear probing; removal shifts back.
#include "sim/peers/holders.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "base/check.h"

namespace signalbox::peers {
namespace {

constexpr std::size_t kWordsMax = Holders::kSlotsMax / 64;
constexpr std::size_t kAhead = 8;  // lookups under way at once

}  // namespace

Holders::Holders() : data_(cells_ * (1 + width_)) {}

std::size_t Holders::home(std::uint64_t hash) const {
  return static_cast<std::size_t>((hash * 0x9E3779B97F4A7C15ull) >> 24) & (cells_ - 1);
}

const std::uint64_t* Holders::find(std::uint64_t hash) const {
  for (std::size_t i = home(hash);; i = next(i)) {
    const std::uint64_t found = key(i);
    if (found == hash) return &data_[i * (1 + width_) + 1];
    if (found == 0) return nullptr;
  }
}

void Holders::add(std::uint64_t hash, Slot slot) {
  CHECK(hash != 0 && slot < kSlotsMax);
  if (slot / 64 >= width_) rebuild(cells_, std::bit_ceil<std::size_t>(slot / 64 + 1));
  if ((size_ + 1) * 2 > cells_) rebuild(cells_ * 2, width_);
  std::size_t i = home(hash);
  while (key(i) != hash && key(i) != 0) i = next(i);
  if (key(i) == 0) {
    key(i) = hash;
    ++size_;
  }
  bits(i)[slot / 64] |= 1ull << (slot % 64);
}

void Holders::remove(std::uint64_t hash, Slot slot) {
  if (slot / 64 >= width_) return;
  std::size_t i = home(hash);
  while (key(i) != hash) {
    if (key(i) == 0) return;
    i = next(i);
  }
  std::uint64_t* const words = bits(i);
  words[slot / 64] &= ~(1ull << (slot % 64));
  if (std::all_of(words, words + width_, [](std::uint64_t w) { return w == 0; })) erase(i);
}

void Holders::erase(std::size_t hole) {
  const std::size_t mask = cells_ - 1;
  for (std::size_t i = next(hole); key(i) != 0; i = next(i)) {
    if (((i - home(key(i))) & mask) < ((i - hole) & mask)) continue;
    key(hole) = key(i);
    std::copy_n(bits(i), width_, bits(hole));
    hole = i;
  }
  key(hole) = 0;
  std::fill_n(bits(hole), width_, 0);
  --size_;
}

void Holders::clear(Slot slot) {
  if (slot / 64 >= width_) return;
  for (std::size_t i = 0; i < cells_; ++i) bits(i)[slot / 64] &= ~(1ull << (slot % 64));
  rebuild(cells_, width_);
}

bool Holders::holds(std::uint64_t hash, Slot slot) const {
  const std::uint64_t* const words = find(hash);
  return words != nullptr && slot / 64 < width_ && (words[slot / 64] >> (slot % 64) & 1) != 0;
}

// Keeps what somebody holds.
void Holders::rebuild(std::size_t cells, std::size_t width) {
  std::vector<std::uint64_t> old(cells * (1 + width));
  old.swap(data_);
  const std::size_t old_cells = std::exchange(cells_, cells);
  const std::size_t old_width = std::exchange(width_, width);
  size_ = 0;
  for (std::size_t i = 0; i < old_cells; ++i) {
    const std::uint64_t* const cell = &old[i * (1 + old_width)];
    const bool held = std::any_of(cell + 1, cell + 1 + old_width,
                                  [](std::uint64_t w) { return w != 0; });
    if (cell[0] == 0 || !held) continue;
    std::size_t to = home(cell[0]);
    while (key(to) != 0) to = next(to);
    key(to) = cell[0];
    std::copy_n(cell + 1, old_width, bits(to));
    ++size_;
  }
}

void Holders::match(std::span<const Piece> pieces, std::span<std::int64_t> tokens) const {
  std::fill(tokens.begin(), tokens.end(), 0);
  const std::size_t words = std::min(width_, (tokens.size() + 63) / 64);
  std::array<std::uint64_t, kWordsMax> alive;
  std::fill_n(alive.begin(), words, ~0ull);
  const auto settle = [&](std::size_t word, std::uint64_t slots, std::int64_t end) {
    for (; slots != 0; slots &= slots - 1) {
      const std::size_t slot = word * 64 + static_cast<std::size_t>(std::countr_zero(slots));
      if (slot < tokens.size()) tokens[slot] = end;
    }
  };
  std::int64_t end = 0;
  for (std::size_t i = 0; i < std::min(kAhead, pieces.size()); ++i) prefetch(pieces[i].hash);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const Piece& piece = pieces[i];
    if (i + kAhead < pieces.size()) prefetch(pieces[i + kAhead].hash);
    const std::uint64_t* const held = find(piece.hash);
    std::uint64_t any = 0;
    for (std::size_t w = 0; w < words; ++w) {
      const std::uint64_t kept = held == nullptr ? 0 : alive[w] & held[w];
      if (end > 0 && kept != alive[w]) settle(w, alive[w] & ~kept, end);
      alive[w] = kept;
      any |= kept;
    }
    if (any == 0) return;
    end = piece.end;
  }
  if (end == 0) return;
  for (std::size_t w = 0; w < words; ++w) settle(w, alive[w], end);
}

}  // namespace signalbox::peers
