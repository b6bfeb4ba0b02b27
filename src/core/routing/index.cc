// SPDX-License-Identifier: Apache-2.0
// The B+-tree: nodes split when full and merge when two or fewer columns are left.
#include "core/routing/index.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace signalbox::routing {
namespace {

constexpr float kFar = std::numeric_limits<float>::infinity();
constexpr std::uint32_t kSparse = 2;     // a node with so few columns looks for a partner
constexpr std::uint32_t kMergedMax = 6;  // leaves room, so that it is not split at once

constexpr int kSecondBits = 51;
constexpr std::uint64_t kSecondMask = (std::uint64_t{1} << kSecondBits) - 1;
constexpr std::uint64_t kQueueBit = std::uint64_t{1} << 63;

// Whether there is a queue, requests in flight, then drain time in microseconds or the step time.
std::uint64_t order_key(const Point& p) {
  if (!std::isfinite(p.at[kWaitRest])) return ~std::uint64_t{0};
  const auto in_flight = static_cast<std::uint64_t>(std::clamp(p.at[kInFlight], 0.0f, 4095.0f));
  const bool queue = p.at[kWaitRest] > 0 || p.drain > kNoQueue;
  const auto second = queue ? static_cast<std::uint64_t>(std::clamp(p.drain, 0.0, 2e9) * 1e6)
                            : std::bit_cast<std::uint32_t>(p.at[kStepNext]);
  return (queue ? kQueueBit : 0) | in_flight << kSecondBits | (second & kSecondMask);
}

// Whether a place with key `now` may stay where `old` put it: about a hundredth of the step time,
// or a millisecond of drain time.
bool near_enough(std::uint64_t old, std::uint64_t now) {
  if (old >> kSecondBits != now >> kSecondBits) return false;
  const std::uint64_t distance = old < now ? now - old : old - now;
  return distance <= ((old & kQueueBit) != 0 ? 1'000u : 100'000u);
}

}  // namespace

Point closed_point() {
  Point point;
  point.at.fill(kFar);
  point.drain = kFar;
  return point;
}

void Index::insert(std::uint32_t owner, const Point& point, const Moved& moved) {
  if (root_ == kNone) root_ = new_node(0);
  const std::uint64_t key = order_key(point);
  std::uint32_t leaf = leaf_for(key);
  if (links_[leaf].count == kFan) leaf = split(leaf, key, moved);
  append(leaf, {key, owner, point}, moved);
  refit(leaf);
  ++size_;
}

void Index::remove(std::uint32_t position, const Moved& moved) {
  CHECK(position / kFan < nodes_.size());
  erase(position / kFan, position % kFan, moved);
  --size_;
}

void Index::update(std::uint32_t position, const Point& point, const Moved& moved) {
  const std::uint32_t leaf = position / kFan;
  const std::uint32_t lane = position % kFan;
  const std::uint64_t key = order_key(point);
  if (!near_enough(links_[leaf].key[lane], key)) {
    const std::uint32_t who = owner(position);
    remove(position, moved);
    insert(who, point, moved);
    return;
  }
  const Node& node = nodes_[leaf];
  const double drain = node.drain[lane / 4][lane % 4];
  bool same = drain <= point.drain && point.drain <= drain + 1e-3;
  for (int r = 0; r < kCoordinates && same; ++r) {
    const float old = node.row[r][lane / 4][lane % 4];
    const float now = point.at[static_cast<std::size_t>(r)];
    same = old <= now && now <= old + 0.01f * (old < 0 ? -old : old);
  }
  if (same) return;
  write(leaf, lane, point);
  refit(leaf);
}

void Index::scale_arrivals(float factor) {
  const Lanes far{kFar, kFar, kFar, kFar};
  for (Node& node : nodes_) {
    for (Lanes& half : node.row[kArrivals]) half = (half < far) ? half * factor : half;
  }
}

void Index::clear_marks() {
  for (auto& marks : marks_) marks = {};
}

void Index::mark(std::uint32_t position, std::uint8_t bit) {
  while (position != kNone) {
    std::uint8_t& marks = marks_[position / kFan][position % kFan];
    if ((marks & bit) != 0) return;
    marks |= bit;
    position = above_[position / kFan];
  }
}

void Index::spread_marks() {
  for (const auto& nodes : of_level_) {
    for (const std::uint32_t node : nodes) {
      const std::uint32_t above = above_[node];
      if (above == kNone) continue;
      auto eight = std::bit_cast<std::uint64_t>(marks_[node]);
      eight |= eight >> 32;
      eight |= eight >> 16;
      eight |= eight >> 8;
      marks_[above / kFan][above % kFan] |= static_cast<std::uint8_t>(eight & 0xFF);
    }
  }
}

std::uint32_t Index::new_node(std::uint8_t level) {
  std::uint32_t number = static_cast<std::uint32_t>(nodes_.size());
  if (free_.empty()) {
    nodes_.emplace_back();
    links_.emplace_back();
    above_.emplace_back();
    marks_.emplace_back();
  } else {
    number = free_.back();
    free_.pop_back();
    links_[number] = Links{};
  }
  if (level >= of_level_.size()) of_level_.resize(level + std::size_t{1});
  links_[number].level = level;
  links_[number].place = static_cast<std::uint32_t>(of_level_[level].size());
  of_level_[level].push_back(number);
  above_[number] = kNone;
  for (std::uint32_t lane = 0; lane < kFan; ++lane) write(number, lane, closed_point());
  return number;
}

void Index::free_node(std::uint32_t node) {
  auto& peers = of_level_[links_[node].level];
  peers[links_[node].place] = peers.back();
  links_[peers.back()].place = links_[node].place;
  peers.pop_back();
  free_.push_back(node);
}

// The leaf whose keys begin last before `key`.
std::uint32_t Index::leaf_for(std::uint64_t key) const {
  std::uint32_t node = root_;
  while (links_[node].level > 0) {
    const Links& links = links_[node];
    std::uint32_t before = kNone;  // greatest key <= `key`
    std::uint32_t least = 0;
    for (std::uint32_t i = 0; i < links.count; ++i) {
      if (links.key[i] < links.key[least]) least = i;
      if (links.key[i] <= key && (before == kNone || links.key[i] > links.key[before])) before = i;
    }
    node = nodes_[node].child[before == kNone ? least : before];
  }
  return node;
}

Point Index::point(std::uint32_t number, std::uint32_t lane) const {
  const Node& node = nodes_[number];
  Point point;
  for (int r = 0; r < kCoordinates; ++r) {
    point.at[static_cast<std::size_t>(r)] = node.row[r][lane / 4][lane % 4];
  }
  point.drain = node.drain[lane / 4][lane % 4];
  return point;
}

Index::Column Index::column(std::uint32_t node, std::uint32_t lane) const {
  return {links_[node].key[lane], nodes_[node].child[lane], point(node, lane)};
}

Point Index::minima(std::uint32_t number) const {
  const Node& node = nodes_[number];
  Point least;
  for (int r = 0; r < kCoordinates; ++r) {
    const Lanes m = at_most(node.row[r][0], node.row[r][1]);
    least.at[static_cast<std::size_t>(r)] = std::min(std::min(m[0], m[1]), std::min(m[2], m[3]));
  }
  least.drain = node.drain[0][0];
  for (std::uint32_t i = 1; i < kFan; ++i) {
    least.drain = std::min(least.drain, static_cast<double>(node.drain[i / 4][i % 4]));
  }
  return least;
}

std::uint64_t Index::least_key(std::uint32_t node) const {
  const Links& links = links_[node];
  return *std::min_element(links.key.begin(), links.key.begin() + links.count);
}

void Index::write(std::uint32_t number, std::uint32_t lane, const Point& point) {
  Node& node = nodes_[number];
  for (int r = 0; r < kCoordinates; ++r) {
    node.row[r][lane / 4][lane % 4] = point.at[static_cast<std::size_t>(r)];
  }
  node.drain[lane / 4][lane % 4] = point.drain;
}

// Adds a column to a node with room; the ancestors' minima are the caller's business.
void Index::append(std::uint32_t node, const Column& column, const Moved& moved) {
  Links& links = links_[node];
  const std::uint32_t lane = links.count++;
  links.key[lane] = column.key;
  nodes_[node].child[lane] = column.child;
  write(node, lane, column.point);
  if (links.level == 0) {
    moved(column.child, node * kFan + lane);
  } else {
    above_[column.child] = node * kFan + lane;
  }
  // Keys only ever sink on the way up; they are separators, not exact minima.
  for (std::uint32_t n = node; above_[n] != kNone; n = parent(n)) {
    std::uint64_t& separator = links_[parent(n)].key[this->lane(n)];
    if (separator <= column.key) break;
    separator = column.key;
  }
}

// Takes a column out, and with it nodes that become empty; sparse nodes look for a partner.
void Index::erase(std::uint32_t node, std::uint32_t lane, const Moved& moved) {
  Links& links = links_[node];
  const std::uint32_t last = --links.count;
  if (lane != last) {
    links.key[lane] = links.key[last];
    const std::uint32_t child = nodes_[node].child[last];
    nodes_[node].child[lane] = child;
    write(node, lane, point(node, last));
    if (links.level == 0) {
      moved(child, node * kFan + lane);
    } else {
      above_[child] = node * kFan + lane;
    }
  }
  write(node, last, closed_point());
  if (links.count == 0 && node == root_) {
    free_node(node);
    root_ = kNone;
  } else if (links.count == 0) {
    const std::uint32_t position = above_[node];
    free_node(node);
    erase(position / kFan, position % kFan, moved);
  } else if (node == root_) {
    while (links_[root_].level > 0 && links_[root_].count == 1) {
      const std::uint32_t only = nodes_[root_].child[0];
      free_node(root_);
      above_[only] = kNone;
      root_ = only;
    }
  } else {
    refit(node);
    if (links_[node].count <= kSparse) merge(node, moved);
  }
}

// Halves a full node by key; returns the half that takes `key`.
std::uint32_t Index::split(std::uint32_t node, std::uint64_t key, const Moved& moved) {
  if (node == root_) {
    root_ = new_node(static_cast<std::uint8_t>(links_[node].level + 1));
    append(root_, {least_key(node), node, minima(node)}, moved);
  }
  const std::uint32_t other = new_node(links_[node].level);
  std::array<Column, kFan> columns;
  for (std::uint32_t i = 0; i < kFan; ++i) columns[i] = column(node, i);
  std::ranges::stable_sort(columns, {}, &Column::key);
  links_[node].count = 0;
  for (std::uint32_t i = 0; i < kFan; ++i) {
    append(i < kFan / 2 ? node : other, columns[i], moved);
  }
  for (std::uint32_t i = kFan / 2; i < kFan; ++i) write(node, i, closed_point());
  // When the parent is full, either of its halves has room for the twin.
  if (links_[parent(node)].count == kFan) split(parent(node), columns[kFan / 2].key, moved);
  append(parent(node), {columns[kFan / 2].key, other, minima(other)}, moved);
  refit(node);
  refit(other);
  return key < columns[kFan / 2].key ? node : other;
}

// Moves all columns of a sparse node to the neighbour that is next in order, if it has room.
bool Index::merge(std::uint32_t node, const Moved& moved) {
  const std::uint32_t above = parent(node);
  const Links& around = links_[above];
  const std::uint64_t key = around.key[lane(node)];
  std::uint32_t partner = kNone;
  std::uint64_t nearest = ~std::uint64_t{0};
  for (std::uint32_t i = 0; i < around.count; ++i) {
    const std::uint32_t candidate = nodes_[above].child[i];
    if (candidate == node || links_[candidate].count + links_[node].count > kMergedMax) continue;
    const std::uint64_t distance =
        around.key[i] < key ? key - around.key[i] : around.key[i] - key;
    if (distance <= nearest) {
      nearest = distance;
      partner = candidate;
    }
  }
  if (partner == kNone) return false;
  for (std::uint32_t i = 0; i < links_[node].count; ++i) append(partner, column(node, i), moved);
  refit(partner);
  const std::uint32_t in_parent = lane(node);
  free_node(node);
  erase(above, in_parent, moved);
  return true;
}

// Brings the ancestors' minima up to date; stops where nothing changes.
void Index::refit(std::uint32_t number) {
  for (; above_[number] != kNone; number = parent(number)) {
    const Point least = minima(number);
    const std::uint32_t up = parent(number);
    const std::uint32_t column = lane(number);
    const Node& node = nodes_[up];
    bool changed = node.drain[column / 4][column % 4] != least.drain;
    for (int r = 0; r < kCoordinates; ++r) {
      changed |=
          node.row[r][column / 4][column % 4] != least.at[static_cast<std::size_t>(r)];
    }
    if (!changed) return;
    write(up, column, least);
  }
}

bool Index::valid() const {
  if (root_ == kNone) return size_ == 0;
  std::uint32_t places = 0;
  std::vector<std::uint32_t> todo{root_};
  while (!todo.empty()) {
    const std::uint32_t number = todo.back();
    todo.pop_back();
    const Links& links = links_[number];
    if (links.count == 0 || links.count > kFan) return false;
    if (links.level == 0) places += links.count;
    for (std::uint32_t i = 0; i < kFan; ++i) {
      const Point here = point(number, i);
      if (i >= links.count && here.at != closed_point().at) return false;
      if (i >= links.count || links.level == 0) continue;
      const std::uint32_t child = nodes_[number].child[i];
      const Point least = minima(child);
      if (here.at != least.at || here.drain != least.drain) return false;
      if (above_[child] != number * kFan + i) return false;
      if (links_[child].level + 1 != links.level) return false;
      todo.push_back(child);
    }
  }
  return places == size_;
}

}  // namespace signalbox::routing
