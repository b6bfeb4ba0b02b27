// SPDX-License-Identifier: Apache-2.0
// Records addressed by 32-bit index, in chunks: growth never moves a record and costs one chunk.
// Freed records are used again, the last freed first. Index 0 is "none". T names one of its own
// 32-bit fields `link()`, which the pool uses while the record is free.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace signalbox::cache {

template <typename T>
class Pool {
 public:
  static constexpr std::uint32_t kChunk = 1024;

  T& operator[](std::uint32_t index) { return chunks_[index / kChunk][index % kChunk]; }
  const T& operator[](std::uint32_t index) const { return chunks_[index / kChunk][index % kChunk]; }

  // A fresh record's index. Grows by a chunk if full().
  std::uint32_t take() {
    std::uint32_t index = free_;
    if (index != 0) {
      free_ = (*this)[index].link();
      (*this)[index].link() = 0;
    } else {
      if (next_ == chunks_.size() * kChunk) chunks_.push_back(std::make_unique<T[]>(kChunk));
      if (next_ == 0) next_ = 1;
      index = next_++;
    }
    ++size_;
    return index;
  }
  void give_back(std::uint32_t index) {
    (*this)[index] = T{};
    (*this)[index].link() = free_;
    free_ = index;
    --size_;
  }

  bool full() const { return free_ == 0 && next_ == chunks_.size() * kChunk; }
  std::size_t size() const { return size_; }
  std::size_t allocated() const { return chunks_.size() * kChunk; }
  std::size_t bytes() const { return allocated() * sizeof(T); }

 private:
  std::vector<std::unique_ptr<T[]>> chunks_;
  std::uint32_t free_ = 0;
  std::uint32_t next_ = 0;  // first index never taken
  std::size_t size_ = 0;
};

}  // namespace signalbox::cache
