// SPDX-License-Identifier: Apache-2.0
// The records of the prefix index: nodes of the chain tree, residencies (a node on an endpoint),
// and touches (the order of last use).
//
// Only what a request touched last, the deepest node of its chain, has a touch; using a node uses
// its ancestors, so they are at least as recent as it. A leaf (a residency without children on its
// endpoint) always has a touch. When a leaf goes and its parent becomes one, the parent takes over
// the leaf's place in the order. A touch that comes to the end while its residency has children is
// dropped: the children are more recent. So leaves go in the order of last use, at O(1) each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "core/cache/holder_set.h"
#include "core/cache/pool.h"
#include "core/model/ids.h"

namespace signalbox::cache {

enum class Quality : std::uint8_t {
  Estimated,     // from bytes
  Interpolated,  // between known counts
  Exact,         // told by the engine's usage
};

struct Node {
  std::uint64_t hash = 0;
  std::int64_t bytes = 0;     // content bytes from the start
  std::uint32_t parent = 0;   // 0: first of a chain
  std::uint32_t depth = 0;
  std::int32_t tokens = 0;    // prompt tokens from the start
  std::int32_t charge = 0;    // tokens of this node alone that each holder's sum contains
  Quality quality = Quality::Estimated;
  HolderSet holders;

  std::uint32_t& link() { return parent; }
};

struct Residency {
  std::uint32_t node = 0;
  std::uint32_t slot = 0;
  std::uint32_t parent = 0;       // the parent node's residency on the same endpoint
  std::uint32_t first_child = 0;
  std::uint32_t next = 0;         // among the parent's children
  std::uint32_t previous = 0;
  std::uint32_t touch = 0;        // 0: none
  bool pending = false;           // implies that the children are pending

  std::uint32_t& link() { return next; }
};

struct TouchLinks {
  std::uint32_t older = 0;
  std::uint32_t newer = 0;
};

struct Touch {
  std::uint32_t residency = 0;
  TouchLinks here;        // among the touches of its endpoint
  TouchLinks everywhere;  // among all

  std::uint32_t& link() { return residency; }
};

struct TouchList {
  std::uint32_t oldest = 0;
  std::uint32_t newest = 0;
};

// An endpoint's part of the index.
struct Slot {
  model::EndpointId endpoint;
  std::int64_t held = 0;      // sum of the charges of its residencies
  std::int64_t declared = 0;  // capacity the engine told; 0: unknown
  double believed = std::numeric_limits<double>::infinity();  // capacity that observation allows
  TouchList touches;
};

struct Records {
  Pool<Node> nodes;
  Pool<Residency> residencies;
  Pool<Touch> touches;

  std::size_t bytes() const { return nodes.bytes() + residencies.bytes() + touches.bytes(); }
};

}  // namespace signalbox::cache
