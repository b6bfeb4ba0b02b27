// SPDX-License-Identifier: Apache-2.0
// Sorted arrays with room to grow.
#include "core/cache/holder_set.h"

#include <algorithm>

#include "base/check.h"

namespace signalbox::cache {

std::size_t HolderSet::position(model::EndpointId endpoint) const {
  const model::EndpointId* first = data();
  return static_cast<std::size_t>(std::lower_bound(first, first + size_, endpoint) - first);
}

std::uint32_t HolderSet::find(model::EndpointId endpoint) const {
  const std::size_t at = position(endpoint);
  return at < size_ && data()[at] == endpoint ? residency_at(at) : 0;
}

std::size_t HolderSet::growth() const {
  if (size_ < std::max(capacity_, 1u)) return 0;
  return heap_bytes(std::max(kFirstCapacity, capacity_ * 2)) - heap_bytes(capacity_);
}

void HolderSet::insert(model::EndpointId endpoint, std::uint32_t residency) {
  if (size_ == 0 && capacity_ == 0) {
    id_ = endpoint;
    one_ = residency;
    size_ = 1;
    return;
  }
  if (size_ >= capacity_) resize(std::max(kFirstCapacity, capacity_ * 2));
  const std::size_t at = position(endpoint);
  CHECK(at == size_ || ids_[at] != endpoint);
  std::copy_backward(ids_ + at, ids_ + size_, ids_ + size_ + 1);
  std::copy_backward(many_ + at, many_ + size_, many_ + size_ + 1);
  ids_[at] = endpoint;
  many_[at] = residency;
  ++size_;
}

void HolderSet::erase(model::EndpointId endpoint) {
  const std::size_t at = position(endpoint);
  CHECK(at < size_ && data()[at] == endpoint);
  --size_;
  if (capacity_ == 0) return;
  std::copy(ids_ + at + 1, ids_ + size_ + 1, ids_ + at);
  std::copy(many_ + at + 1, many_ + size_ + 1, many_ + at);
  if (size_ <= 1) {
    resize(0);
  } else if (size_ * 4 <= capacity_ && capacity_ > kFirstCapacity) {
    resize(capacity_ / 2);
  }
}

void HolderSet::resize(std::uint32_t capacity) {
  if (capacity == 0) {
    const model::EndpointId id = ids_[0];
    const std::uint32_t residency = many_[0];
    release();
    id_ = id;
    one_ = residency;
    return;
  }
  auto* ids = new model::EndpointId[capacity];
  auto* many = new std::uint32_t[capacity];
  std::copy(data(), data() + size_, ids);
  for (std::size_t i = 0; i < size_; ++i) many[i] = residency_at(i);
  release();
  ids_ = ids;
  many_ = many;
  capacity_ = capacity;
}

void HolderSet::release() {
  if (capacity_ == 0) return;
  delete[] ids_;
  delete[] many_;
  capacity_ = 0;
}

void HolderSet::steal(HolderSet& other) noexcept {
  size_ = other.size_;
  capacity_ = other.capacity_;
  if (capacity_ == 0) {
    id_ = other.id_;
    one_ = other.one_;
  } else {
    ids_ = other.ids_;
    many_ = other.many_;
  }
  other.size_ = 0;
  other.capacity_ = 0;
}

}  // namespace signalbox::cache
