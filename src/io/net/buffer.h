// SPDX-License-Identifier: Apache-2.0
// A contiguous byte buffer to read into and consume from. Growth does not clear memory: bodies are
// hundreds of kilobytes and are overwritten at once.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <string_view>

namespace signalbox::net {

class Buffer {
 public:
  std::string_view view() const { return {data_.get() + begin_, end_ - begin_}; }
  std::size_t size() const { return end_ - begin_; }
  bool empty() const { return begin_ == end_; }
  std::size_t capacity() const { return capacity_; }

  // At least `bytes` of free space behind the content; the content may move.
  char* prepare(std::size_t bytes) {
    if (capacity_ - end_ < bytes) make_room(bytes);
    return data_.get() + end_;
  }
  std::size_t space() const { return capacity_ - end_; }
  // `bytes` of the prepared space were filled.
  void commit(std::size_t bytes) { end_ += bytes; }
  void append(std::string_view bytes) {
    if (bytes.empty()) return;
    std::memcpy(prepare(bytes.size()), bytes.data(), bytes.size());
    commit(bytes.size());
  }
  // Drops the first `bytes`.
  void consume(std::size_t bytes) {
    begin_ += bytes;
    if (begin_ == end_) begin_ = end_ = 0;
  }
  // Keeps the first `bytes`.
  void truncate(std::size_t bytes) { end_ = begin_ + bytes; }
  void clear() { begin_ = end_ = 0; }
  // Gives the memory back when it is empty and larger than `keep`.
  void shrink(std::size_t keep) {
    if (empty() && capacity_ > keep) {
      data_.reset();
      capacity_ = 0;
    }
  }

 private:
  void make_room(std::size_t bytes) {
    const std::size_t held = size();
    if (capacity_ >= held + bytes && begin_ >= capacity_ / 2) {
      std::memmove(data_.get(), data_.get() + begin_, held);
    } else {
      std::size_t wanted = capacity_ == 0 ? 4096 : capacity_ * 2;
      if (wanted < held + bytes) wanted = held + bytes;
      std::unique_ptr<char[]> larger(new char[wanted]);
      if (held > 0) std::memcpy(larger.get(), data_.get() + begin_, held);
      data_ = std::move(larger);
      capacity_ = wanted;
    }
    begin_ = 0;
    end_ = held;
  }

  std::unique_ptr<char[]> data_;
  std::size_t capacity_ = 0;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

}  // namespace signalbox::net
