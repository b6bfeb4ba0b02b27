// SPDX-License-Identifier: Apache-2.0
// The cut against every possible cut.
#include "core/dispatch/partition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>

#include "base/rng.h"

namespace signalbox::dispatch {
namespace {

// What a cut costs, by its definition: bit i of `cuts` ends a pass behind passenger i.
double cost(std::span<const Passenger> line, const Instance& instance, std::uint32_t cuts) {
  double total = 0, longest = 0, sum = 0;
  std::size_t waiting = line.size(), aboard = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const double first_chunk =
        line[i].tokens <= instance.chunk_tokens
            ? line[i].seconds
            : line[i].seconds * instance.chunk_tokens / line[i].tokens;
    longest = std::max(longest, first_chunk);
    sum += line[i].seconds;
    ++aboard;
    if (i + 1 < line.size() && (cuts >> i & 1) == 0) continue;
    const double mean = sum / static_cast<double>(instance.ranks.size());
    total += static_cast<double>(waiting) *
             (instance.overhead_seconds + std::max(longest, mean));
    waiting -= aboard;
    longest = sum = 0;
    aboard = 0;
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

}  // namespace
}  // namespace signalbox::dispatch
