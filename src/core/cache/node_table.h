// SPDX-License-Identifier: Apache-2.0
// Hash of a chain node -> (index, depth). Extendible hashing over segments of 512 slots: growth
// splits one segment, so no insert ever pays for a whole rehash. At most one cache miss a probe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace signalbox::cache {

class NodeTable {
 public:
  NodeTable();

  // Index of the node with this hash at this depth; 0: none.
  std::uint32_t find(std::uint64_t hash, std::uint32_t depth) const;
  // False if the hash is there already or its segment can be split no further: the node must not
  // enter the index. index > 0.
  bool insert(std::uint64_t hash, std::uint32_t depth, std::uint32_t index);
  void erase(std::uint64_t hash);
  // Starts loading what find(hash) will read.
  void prefetch(std::uint64_t hash) const;

  std::size_t size() const { return size_; }
  std::size_t bytes() const;

 private:
  static constexpr std::uint32_t kSlots = 512;
  static constexpr std::uint32_t kUsedMax = kSlots / 8 * 7;
  static constexpr unsigned kDepthMax = 18;

  struct Slot {
    std::uint64_t hash = 0;
    std::uint32_t index = 0;  // 0: free
    std::uint32_t depth = 0;
  };
  struct Segment {
    std::array<Slot, kSlots> slots;
    std::uint32_t used = 0;
    unsigned depth = 0;  // leading bits that all its hashes share
  };

  static std::uint64_t spread(std::uint64_t hash);
  static std::uint32_t home(std::uint64_t spread_hash);
  std::size_t place(std::uint64_t spread_hash) const { return spread_hash >> (64 - depth_); }
  static void put(Segment& segment, const Slot& slot);
  bool split(std::uint64_t spread_hash);

  std::vector<std::unique_ptr<Segment>> segments_;
  std::vector<Segment*> directory_;  // 2^depth_, by the leading bits
  unsigned depth_ = 1;
  std::size_t size_ = 0;
};

}  // namespace signalbox::cache
