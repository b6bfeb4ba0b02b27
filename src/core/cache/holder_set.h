// SPDX-License-Identifier: Apache-2.0
// The endpoints that hold one node, ascending, each with the index of its residency. One holder,
// the usual case, lives inside the set; more live in two arrays on the heap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/model/ids.h"

namespace signalbox::cache {

class HolderSet {
 public:
  HolderSet() = default;
  HolderSet(HolderSet&& other) noexcept { steal(other); }
  HolderSet& operator=(HolderSet&& other) noexcept {
    if (this != &other) {
      release();
      steal(other);
    }
    return *this;
  }
  HolderSet(const HolderSet&) = delete;
  HolderSet& operator=(const HolderSet&) = delete;
  ~HolderSet() { release(); }

  std::uint32_t size() const { return size_; }
  std::span<const model::EndpointId> ids() const { return {data(), size_}; }
  std::uint32_t residency_at(std::size_t i) const { return capacity_ == 0 ? one_ : many_[i]; }
  // Residency of the endpoint; 0: it holds nothing here. O(log n).
  std::uint32_t find(model::EndpointId endpoint) const;
  // The endpoint must not be in the set; residency > 0. O(n) of a memory move.
  void insert(model::EndpointId endpoint, std::uint32_t residency);
  // The endpoint must be in the set.
  void erase(model::EndpointId endpoint);
  // Memory on the heap, with the allocator's share.
  std::size_t heap_bytes() const { return heap_bytes(capacity_); }
  // heap_bytes() after one more insert, less heap_bytes() now.
  std::size_t growth() const;

 private:
  static constexpr std::uint32_t kFirstCapacity = 4;
  static std::size_t heap_bytes(std::uint32_t capacity) {
    return capacity == 0 ? 0 : capacity * 8ull + 32;
  }

  const model::EndpointId* data() const { return capacity_ == 0 ? &id_ : ids_; }
  std::size_t position(model::EndpointId endpoint) const;
  void resize(std::uint32_t capacity);
  void release();
  void steal(HolderSet& other) noexcept;

  std::uint32_t size_ = 0;
  std::uint32_t capacity_ = 0;  // 0: inside
  union {
    model::EndpointId id_{};
    model::EndpointId* ids_;
  };
  union {
    std::uint32_t one_ = 0;
    std::uint32_t* many_;
  };
};

}  // namespace signalbox::cache
