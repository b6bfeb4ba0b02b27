// SPDX-License-Identifier: Apache-2.0
// The cut against every possible cut.
#include "core/dispatch/partition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <limits>

#include "base/rng.h"

namespace signalbox::dispatch {
namespace {

constexpr double kNoSuchCut = std::numeric_limits<double>::infinity();

// The shortest that a pass can be, by its definition.
double shortest(std::vector<double> parts, double sum, std::size_t ranks) {
  std::ranges::sort(parts, std::greater<>{});
  double least = sum / static_cast<double>(ranks);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::size_t sharing = i / ranks + 1;
    least = std::max(least, static_cast<double>(sharing) * parts[i]);
  }
  return least;
}

// What a cut costs, by its definition: bit i of `cuts` ends a pass behind passenger i.
double cost(std::span<const Passenger> line, const Instance& instance, std::uint32_t cuts) {
  const double room = instance.chunk_tokens * static_cast<double>(instance.ranks.size());
  double total = 0, sum = 0, tokens = 0;
  std::vector<double> parts;
  std::size_t waiting = line.size();
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (tokens >= room) return kNoSuchCut;
    const double share = std::min(1.0, instance.chunk_tokens / line[i].tokens);
    tokens += share * line[i].tokens;
    parts.push_back(share * line[i].seconds);
    sum += line[i].seconds;
    if (i + 1 < line.size() && (cuts >> i & 1) == 0) continue;
    const double length = instance.overhead_seconds + shortest(parts, sum, instance.ranks.size());
    total += static_cast<double>(waiting) * length;
    waiting -= parts.size();
    sum = tokens = 0;
    parts.clear();
  }
  return total;
}

std::uint32_t cut_behind(std::size_t first) { return 1u << (first - 1); }

TEST(PartitionLaw, NoOtherFirstPassLeadsToLess) {
  Rng rng(3, "partition");
  Partition partition;
  for (int round = 0; round < 300; ++round) {
    std::array<Rank, 3> ranks;
    const Instance instance{std::span(ranks).first(1 + rng.below(3)), 2000, 0.3 * rng.uniform()};
    std::vector<Passenger> line(1 + rng.below(9));
    for (Passenger& p : line) {
      p.tokens = 1 + rng.uniform() * 5000;
      p.seconds = p.tokens * 1e-4;
    }
    double best = std::numeric_limits<double>::infinity();
    double with_first = best;
    const std::size_t first = partition.first_pass(line, instance);
    ASSERT_GE(first, 1u);
    ASSERT_LE(first, line.size());
    for (std::uint32_t cuts = 0; cuts < 1u << (line.size() - 1); ++cuts) {
      const double c = cost(line, instance, cuts);
      best = std::min(best, c);
      const std::uint32_t before = cut_behind(first) - 1;
      const bool ends_there = first == line.size() || (cuts & cut_behind(first)) != 0;
      if (ends_there && (cuts & before) == 0) with_first = std::min(with_first, c);
    }
    EXPECT_NEAR(with_first, best, 1e-9) << "round " << round;
  }
}

TEST(Partition, TheShortDoNotWaitForTheLong) {
  std::array<Rank, 4> ranks;
  const Instance instance{ranks, 8192, 0.05};
  std::vector<Passenger> line(9);
  for (Passenger& p : line) p.tokens = 200, p.seconds = 0.02;
  line.back().tokens = 8000, line.back().seconds = 0.8;
  Partition partition;
  EXPECT_EQ(partition.first_pass(line, instance), 8u);
}

TEST(Partition, WhoCostsNoMoreTimeComesAlong) {
  std::array<Rank, 8> ranks;
  const Instance instance{ranks, 8192, 0.05};
  const std::vector<Passenger> line(8, Passenger{{}, {}, 2000, 0.2});
  Partition partition;
  EXPECT_EQ(partition.first_pass(line, instance), 8u);
}

// With the mean over the ranks for a pass's length, one more was worth having, and made it twice as
// long.
TEST(Partition, OneMoreThanRanksWaitsForTheNext) {
  std::array<Rank, 8> ranks;
  const Instance instance{ranks, 8192, 0.05};
  Partition partition;
  for (const std::size_t waiting : {9u, 12u, 16u, 30u}) {
    const std::vector<Passenger> line(waiting, Passenger{{}, {}, 2000, 0.3});
    EXPECT_EQ(partition.first_pass(line, instance), 8u) << waiting;
  }
}

// Whoever seats them greedily, no pass is shorter than the bound, and few are much longer.
TEST(PassBoundLaw, NoPassIsShorter) {
  Rng rng(5, "bound");
  for (int round = 0; round < 500; ++round) {
    const std::size_t ranks = 1 + rng.below(6);
    std::vector<double> parts(1 + rng.below(20));
    PassBound bound;
    for (double& part : parts) {
      part = round % 2 == 0 ? rng.uniform() : 0.25 * static_cast<double>(1 + rng.below(3));
      bound.add(part, part);
    }
    std::ranges::sort(parts, std::greater<>{});
    std::vector<double> load(ranks);
    for (const double part : parts) *std::ranges::min_element(load) += part;
    const double pass = *std::ranges::max_element(load);
    EXPECT_GE(pass, bound.seconds(ranks) - 1e-12);
    // Longest first: at most 4/3 - 1/(3·ranks) of the best pass, and the bound is near that.
    EXPECT_LE(pass, 1.5 * bound.seconds(ranks) + 1e-12);
  }
}

}  // namespace
}  // namespace signalbox::dispatch
