// SPDX-License-Identifier: Apache-2.0
// Keeps neighbours in an Index alike. Each slice halves one range of places along the coordinate
// in which they differ most, in seconds of a typical request's score; ranges are taken breadth
// first, from the whole down to single blocks, and then again from the start.
#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "core/routing/index.h"

namespace signalbox::routing {
namespace {

// Four updates of every place pay for one whole pass of about N·log2(N/8) steps.
constexpr std::int64_t kStepsPerUpdate = 3;

float effective_wait(const Point& p, double now) {
  return at_least(p.at[kWaitRest], static_cast<float>(p.drain - now));
}

float key(const Point& p, int coordinate, double now) {
  return coordinate == kWaitRest ? effective_wait(p, now)
                                 : p.at[static_cast<std::size_t>(coordinate)];
}

bool open(const Point& p) { return std::isfinite(p.at[kWaitRest]); }

float typical_score(const std::array<double, kCoordinates>& at, const Index::Typical& t) {
  std::array<float, kCoordinates> x{};
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(at[i]);
  Place<float> p;
  p.reach = x[kReach];
  p.wait = x[kWaitRest];
  p.b = x[kPrefillB];
  p.c = x[kPrefillC];
  p.queued = x[kQueued];
  p.pass_per_token = x[kPassPerToken];
  p.step_now = x[kStepNow];
  p.kv_wait = at_least(t.need + x[kKvUsed], 0.0f) * x[kRelease];
  p.step_next = x[kStepNext];
  p.e = x[kStepE];
  p.f = x[kStepF];
  p.in_flight = x[kInFlight];
  p.arrivals = x[kArrivals];
  p.overlap = t.overlap_short * x[kOverlapShort] + t.overlap_long * x[kOverlapLong];
  p.money = 0;
  return predict(t.constants, p, t.share).total;
}

// The child capacity of the smallest node that covers `places`: a power of eight, at least eight.
std::uint32_t child_capacity(std::uint32_t places) {
  std::uint32_t capacity = Index::kFan;
  while (capacity * Index::kFan < places) capacity *= Index::kFan;
  return capacity;
}

}  // namespace

bool Index::due() {
  if (next_range_ >= ranges_.size()) {
    ranges_.clear();
    ranges_.push_back({0, size()});
    next_range_ = 0;
  }
  const Range range = ranges_[next_range_];
  return credit_ * kStepsPerUpdate >= range.high - range.low;
}

Index::Range Index::reorder(const Typical& typical) {
  const Range range = ranges_[next_range_++];
  const std::uint32_t places = range.high - range.low;
  credit_ = std::max<std::int64_t>(0, credit_ - (places + kStepsPerUpdate - 1) / kStepsPerUpdate);
  points_.clear();
  for (std::uint32_t i = range.low; i < range.high; ++i) points_.push_back(point(i));
  const int coordinate = widest(typical, range);
  if (coordinate < 0) return {range.low, range.low};

  const std::uint32_t capacity = child_capacity(places);
  const std::uint32_t children = (places + capacity - 1) / capacity;
  const std::uint32_t middle = std::max(1u, children / 2) * capacity;
  keys_.clear();
  for (std::uint32_t i = 0; i < places; ++i) {
    keys_.emplace_back(key(points_[i], coordinate, typical.now), i);
  }
  std::ranges::nth_element(keys_, keys_.begin() + middle);
  std::vector<std::uint32_t> owners(owners_.begin() + range.low, owners_.begin() + range.high);
  for (std::uint32_t i = 0; i < places; ++i) {
    owners_[range.low + i] = owners[keys_[i].second];
    write(range.low + i, points_[keys_[i].second]);
  }
  refit_range(range);
  if (middle > kFan) ranges_.push_back({range.low, range.low + middle});
  if (places - middle > kFan) ranges_.push_back({range.low + middle, range.high});
  return range;
}

// The coordinate whose mean absolute deviation moves the typical score most; -1: all are equal.
int Index::widest(const Typical& typical, Range range) {
  const std::uint32_t places = range.high - range.low;
  std::array<double, kCoordinates> mean{};
  std::array<double, kCoordinates> spread{};
  double count = 0;
  for (const Point& p : points_) {
    if (!open(p)) continue;
    ++count;
    for (int r = 0; r < kCoordinates; ++r) {
      mean[static_cast<std::size_t>(r)] += static_cast<double>(key(p, r, typical.now));
    }
  }
  if (count == 0) return -1;
  for (double& m : mean) m /= count;
  for (const Point& p : points_) {
    if (!open(p)) continue;
    for (int r = 0; r < kCoordinates; ++r) {
      const auto i = static_cast<std::size_t>(r);
      spread[i] += std::abs(static_cast<double>(key(p, r, typical.now)) - mean[i]) / count;
    }
  }
  const float base = typical_score(mean, typical);
  int best = count < places ? static_cast<int>(kWaitRest) : -1;  // closed places go to the end
  float most = 0;
  for (int r = 0; r < kCoordinates; ++r) {
    std::array<double, kCoordinates> moved = mean;
    moved[static_cast<std::size_t>(r)] += spread[static_cast<std::size_t>(r)];
    const float gain = typical_score(moved, typical) - base;
    if (gain > most) {
      most = gain;
      best = r;
    }
  }
  return best;
}

}  // namespace signalbox::routing
