// SPDX-License-Identifier: Apache-2.0
// KV blocks in host memory: what was evicted from the GPU, until it is the least recently used.
// Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <span>
#include <unordered_map>

namespace signalbox::truth {

class HostTier {
 public:
  // In blocks; 0: nothing is ever kept.
  explicit HostTier(std::size_t capacity) : capacity_(capacity) {}

  void store(std::uint64_t hash);
  // How many leading hashes are here. They are the most recently used then.
  std::size_t use(std::span<const std::uint64_t> hashes);
  // The same, and nothing changes.
  std::size_t match(std::span<const std::uint64_t> hashes) const;
  void clear();
  std::size_t size() const { return order_.size(); }
  std::size_t capacity() const { return capacity_; }

 private:
  std::size_t capacity_;
  std::list<std::uint64_t> order_;  // oldest first
  std::unordered_map<std::uint64_t, std::list<std::uint64_t>::iterator> by_hash_;  // never walked
};

}  // namespace signalbox::truth
