// SPDX-License-Identifier: Apache-2.0
// An open-addressing map from well-mixed 64-bit keys (never 0) to small values. Never iterated, so
// its order matters to nobody. Pointers last until the next insert or erase.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace signalbox::peers {

template <typename Value>
class FlatMap {
 public:
  FlatMap() : cells_(64) {}

  Value* find(std::uint64_t key) {
    for (std::size_t i = home(key);; i = next(i)) {
      if (cells_[i].key == key) return &cells_[i].value;
      if (cells_[i].key == 0) return nullptr;
    }
  }

  // A hint that the key is looked for soon.
  void prefetch(std::uint64_t key) const { __builtin_prefetch(&cells_[home(key)]); }

  // The value of the key; a new one is Value{}.
  Value& at(std::uint64_t key) {
    if (Value* found = find(key)) return *found;
    if ((size_ + 1) * 2 > cells_.size()) grow();
    ++size_;
    return place(key);
  }

  void erase(std::uint64_t key) {
    std::size_t hole = home(key);
    while (cells_[hole].key != key) {
      if (cells_[hole].key == 0) return;
      hole = next(hole);
    }
    const std::size_t mask = cells_.size() - 1;
    for (std::size_t i = next(hole); cells_[i].key != 0; i = next(i)) {
      if (((i - home(cells_[i].key)) & mask) < ((i - hole) & mask)) continue;
      cells_[hole] = std::move(cells_[i]);
      hole = i;
    }
    cells_[hole] = Cell{};
    --size_;
  }

  std::size_t size() const { return size_; }

 private:
  struct Cell {
    std::uint64_t key = 0;
    Value value{};
  };

  std::size_t home(std::uint64_t key) const {
    return static_cast<std::size_t>((key * 0x9E3779B97F4A7C15ull) >> 24) & (cells_.size() - 1);
  }
  std::size_t next(std::size_t i) const { return (i + 1) & (cells_.size() - 1); }

  Value& place(std::uint64_t key) {
    std::size_t i = home(key);
    while (cells_[i].key != 0) i = next(i);
    cells_[i].key = key;
    return cells_[i].value;
  }

  void grow() {
    std::vector<Cell> old(cells_.size() * 2);
    old.swap(cells_);
    for (Cell& cell : old) {
      if (cell.key != 0) place(cell.key) = std::move(cell.value);
    }
  }

  std::vector<Cell> cells_;
  std::size_t size_ = 0;
};

}  // namespace signalbox::peers
