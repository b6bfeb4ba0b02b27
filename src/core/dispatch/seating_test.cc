// SPDX-License-Identifier: Apache-2.0
// Laws of a seated pass.
#include "core/dispatch/seating.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/rng.h"

namespace signalbox::dispatch {
namespace {

struct Car {
  explicit Car(std::size_t count, double chunk = 8192) : ranks(count) {
    instance = {ranks, chunk, 0.05, 1.4e-4, 0};
  }
  std::vector<Rank> ranks;
  Instance instance;
  std::vector<Departure> out;
};

std::vector<Passenger> random_line(Rng& rng, std::size_t count, double longest) {
  std::vector<Passenger> line(count);
  for (Passenger& p : line) {
    p.tokens = 1 + rng.uniform() * longest;
    p.seconds = p.tokens * 1.4e-4;
  }
  return line;
}

double length(const Car& car) {
  double seconds = 0;
  for (const Rank& r : car.ranks) seconds = std::max(seconds, r.seconds);
  return seconds;
}

TEST(SeatingLaw, NobodySitsTwiceAndRanksAddUp) {
  Rng rng(5, "seating");
  for (int round = 0; round < 300; ++round) {
    Car car(1 + rng.below(8));
    const auto line = random_line(rng, 1 + rng.below(60), 12'000);
    Seating seating(car.instance, car.out);
    const std::size_t count = 1 + rng.below(line.size());
    seating.seat(line, count);
    const double before = length(car);
    seating.fill_free_seats(line, 0);
    EXPECT_EQ(length(car), before);
    if (rng.chance(0.5)) seating.fill_up(line, 0);

    std::vector<int> taken(line.size());
    std::vector<Rank> sums(car.ranks.size());
    for (const Departure& d : car.out) {
      ++taken.at(d.passenger);
      Rank& sum = sums.at(d.rank);
      sum.tokens = std::min(car.instance.chunk_tokens, sum.tokens + line[d.passenger].tokens);
      sum.seconds = sum.tokens * 1.4e-4;
    }
    for (std::size_t i = 0; i < line.size(); ++i) {
      EXPECT_EQ(taken[i], seating.seated(i) ? 1 : 0);
    }
    for (std::size_t i = 0; i < sums.size(); ++i) {
      EXPECT_NEAR(sums[i].tokens, car.ranks[i].tokens, 1e-6);
      EXPECT_NEAR(sums[i].seconds, car.ranks[i].seconds, 1e-9);
    }
  }
}

// Graham's bound against the best that any seating can reach: the mean, or the longest.
TEST(SeatingLaw, ThePassIsNearItsShortest) {
  Rng rng(6, "seating");
  for (int round = 0; round < 300; ++round) {
    const std::size_t ranks = 1 + rng.below(16);
    Car car(ranks, 1e9);
    const auto line = random_line(rng, ranks + rng.below(80), 3000);
    double sum = 0, longest = 0;
    for (const Passenger& p : line) {
      sum += p.seconds;
      longest = std::max(longest, p.seconds);
    }
    Seating(car.instance, car.out).seat(line, line.size());
    EXPECT_EQ(car.out.size(), line.size());
    const double mean = sum / static_cast<double>(ranks);
    EXPECT_LE(length(car), mean + longest * (1 - 1 / static_cast<double>(ranks)) + 1e-9);
  }
}

TEST(SeatingLaw, WholeRequestsStayWithinTheChunk) {
  Rng rng(7, "seating");
  for (int round = 0; round < 200; ++round) {
    Car car(1 + rng.below(8));
    const auto line = random_line(rng, 1 + rng.below(60), 8000);
    Seating seating(car.instance, car.out);
    seating.seat(line, line.size());
    for (const Rank& r : car.ranks) EXPECT_LE(r.tokens, car.instance.chunk_tokens);
    seating.fill_up(line, 0);
    // Of a line that is long enough no rank goes with room; on each at most one goes on later.
    const bool all = car.out.size() == line.size();
    for (const Rank& r : car.ranks) {
      EXPECT_LE(r.tokens, car.instance.chunk_tokens);
      EXPECT_TRUE(all || r.tokens == car.instance.chunk_tokens) << r.tokens;
    }
  }
}

TEST(Seating, ALongPromptGetsARankOfItsOwn) {
  Car car(2);
  const std::vector<Passenger> line = {{{}, {}, 500, 0.05}, {{}, {}, 30'000, 3.0}};
  Seating seating(car.instance, car.out);
  seating.seat(line, 2);
  ASSERT_EQ(car.out.size(), 2u);
  EXPECT_NE(car.out[0].rank, car.out[1].rank);
}

TEST(Seating, TheRankThatHoldsThePrefixHasLessToDo) {
  Car car(2);
  car.ranks[1] = {1000, 0, 0.14};
  Passenger p{{}, {}, 6000, 0.84};
  p.home = 1;
  p.home_tokens = 2000;
  p.home_seconds = 0.28;
  p.home_context = 4000;
  Seating(car.instance, car.out).seat({&p, 1}, 1);
  ASSERT_EQ(car.out.size(), 1u);
  EXPECT_EQ(car.out[0].rank, 1u) << "0.42 s instead of 0.84";
  EXPECT_EQ(car.ranks[1].tokens, 3000);
}

TEST(Seating, AndNoOtherPrivilege) {
  Car car(2);
  car.ranks[1] = {5000, 0, 0.7};
  Passenger p{{}, {}, 3000, 0.42};
  p.home = 1;
  p.home_tokens = 2000;
  p.home_seconds = 0.28;
  Seating(car.instance, car.out).seat({&p, 1}, 1);
  EXPECT_EQ(car.out[0].rank, 0u);
}

TEST(Instance, ARankTakesAChunkOfAPrompt) {
  Car car(1);
  car.instance.attention_seconds = 1e-8;
  car.instance.compute(0, 20'000, 1000);
  EXPECT_EQ(car.ranks[0].tokens, 8192);
  EXPECT_NEAR(car.ranks[0].attention, 8192 * (1000 + 4096.0), 1);
  EXPECT_NEAR(car.instance.pass_seconds(),
              0.05 + 8192 * 1.4e-4 + 8192 * (1000 + 4096.0) * 1e-8, 1e-9);
  car.instance.compute(0, 100, 0);
  EXPECT_EQ(car.ranks[0].tokens, 8192) << "there is no room left";
}

TEST(Seating, WhatIsLeftOfEarlierPassesCounts) {
  Car car(2);
  car.ranks[0] = {6000, 0, 0.6};
  const std::vector<Passenger> line = {{{}, {}, 3000, 0.3}};
  Seating(car.instance, car.out).seat(line, 1);
  ASSERT_EQ(car.out.size(), 1u);
  EXPECT_EQ(car.out[0].rank, 1u);
}

}  // namespace
}  // namespace signalbox::dispatch
