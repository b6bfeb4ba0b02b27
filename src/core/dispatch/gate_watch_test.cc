// SPDX-License-Identifier: Apache-2.0
// Goal: a barrier is seen where there is one and nowhere else, and the waiting for it is measured.
// Method: engines of eight ranks, with a barrier and without, played in a few lines; and the rule
// that chooses by what was seen.
#include "core/dispatch/gate_watch.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "base/rng.h"
#include "core/dispatch/auto_mode.h"

namespace signalbox::dispatch {
namespace {

using std::chrono::milliseconds;

constexpr std::uint32_t kRanks = 8;

struct Prompt {
  double came = 0;
  double seconds = 0;
  std::uint32_t rank = 0;
  double due = 0;
  double told = 0;
};

// Poisson arrivals over the ranks of one engine; `told` is left open.
std::vector<Prompt> prompts(Rng& rng, double per_second, int count) {
  std::vector<Prompt> out;
  double now = 10;
  std::array<double, kRanks> free{};
  for (int i = 0; i < count; ++i) {
    now += rng.exponential(1 / per_second);
    Prompt p{now, rng.uniform(0.05, 0.6), static_cast<std::uint32_t>(rng.below(kRanks)), 0, 0};
    double& rank = free[p.rank];
    rank = std::max(rank, now) + p.seconds;
    p.due = rank;
    out.push_back(p);
  }
  return out;
}

// All that wait when a pass begins are computed in it, rank by rank; it lasts as long as the
// fullest.
void behind_a_barrier(std::vector<Prompt>& all) {
  double over = 0;
  for (std::size_t next = 0; next < all.size();) {
    const double begin = std::max(over, all[next].came);
    std::array<double, kRanks> work{};
    std::size_t end = next;
    for (; end < all.size() && all[end].came <= begin; ++end) {
      work[all[end].rank] += all[end].seconds;
    }
    over = begin + *std::ranges::max_element(work);
    for (; next < end; ++next) all[next].told = over;
  }
}

GateWatch watch(std::vector<Prompt> all, Rng& rng, double error) {
  std::ranges::sort(all, {}, &Prompt::told);
  GateWatch out;
  for (const Prompt& p : all) {
    const double due = p.came + (p.due - p.came) * std::exp(error * rng.normal());
    out.first_token(0, p.rank, Instant(from_seconds(p.came)), Instant(from_seconds(due)),
                    Instant(from_seconds(p.told + rng.uniform(0, 0.002))));
  }
  return out;
}

RC_GTEST_PROP(GateWatch, SeesABarrierWhereThereIsOne, ()) {
  Rng rng(*rc::gen::arbitrary<std::uint64_t>(), "watch");
  const double error = rng.uniform(0, 1);
  auto all = prompts(rng, rng.uniform(6, 40), 600);
  auto apart = all;
  behind_a_barrier(all);
  for (Prompt& p : apart) p.told = p.due;
  RC_ASSERT(watch(all, rng, error).barrier() == Barrier::Yes);
  RC_ASSERT(watch(apart, rng, error).barrier() == Barrier::No);
}

TEST(GateWatch, KnowsNothingOfWhoIsAlone) {
  GateWatch watch;
  for (int i = 0; i < 1000; ++i) {
    const Instant now{std::chrono::seconds(i)};
    watch.first_token(0, 3, now - milliseconds(100), now, now);
    watch.first_token(1, 2, now - milliseconds(100), now + milliseconds(500), now);
  }
  EXPECT_EQ(watch.barrier(), Barrier::Unknown) << "one rank, or ranks of two engines";
}

TEST(GateWatch, PromptsThatAreDueTogetherProveNothing) {
  GateWatch watch;
  for (int i = 0; i < 1000; ++i) {
    const Instant now{std::chrono::seconds(i)};
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      watch.first_token(0, rank, now - milliseconds(300), now, now);
    }
  }
  EXPECT_EQ(watch.barrier(), Barrier::Unknown);
}

// Passes of 400 ms, back to back; who comes waits from 0 to 400 ms for the next.
TEST(GateWatch, MeasuresPassesAndTheWaitForThem) {
  GateWatch watch;
  Rng rng(1, "watch");
  for (int pass = 10; pass < 300; ++pass) {
    const Instant begin{milliseconds(400 * pass)};
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      const Instant came = begin - from_seconds(rng.uniform(0, 0.4));
      watch.first_token(0, rank, came, came + milliseconds(30 + 60 * rank),
                        begin + milliseconds(400));
    }
  }
  EXPECT_NEAR(watch.pass(), 0.4, 0.01);
  EXPECT_NEAR(watch.wait(), 0.2, 0.06);
  EXPECT_NEAR(watch.busy(), 1, 0.01);
  EXPECT_EQ(watch.barrier(), Barrier::Yes);
  EXPECT_GT(watch.passes(), 200);
  watch.begin_anew();
  EXPECT_EQ(watch.passes(), 0);
  EXPECT_EQ(watch.barrier(), Barrier::Unknown);
}

GateWatch played(double per_second, bool barrier, int count = 1000) {
  Rng rng(5, "played");
  auto all = prompts(rng, per_second, count);
  if (barrier) behind_a_barrier(all);
  else for (Prompt& p : all) p.told = p.due;
  return watch(all, rng, 0.2);
}

TEST(AutoMode, HoldsWhereOneWaitsLongerForTheNextPassThanForThatOfAll) {
  const Config config;
  EXPECT_TRUE(should_hold(config, played(8, true), 4, false));
  EXPECT_FALSE(should_hold(config, played(8, true), 1, false)) << "nobody else departs sooner";
  EXPECT_FALSE(should_hold(config, played(8, false), 4, false));
  EXPECT_FALSE(should_hold(config, played(8, false), 4, true)) << "no barrier";
  EXPECT_FALSE(should_hold(config, played(8, true, 40), 4, false)) << "too early";
  EXPECT_TRUE(should_hold(config, played(8, true, 40), 4, true));
  Config never;
  never.auto_threshold = 100;
  EXPECT_FALSE(should_hold(never, played(8, true), 4, false));
}

TEST(AutoMode, EndsWhenPassesAreRareAndNotBefore) {
  Config config;
  config.auto_threshold = 1.2;
  EXPECT_FALSE(should_hold(config, played(1, true), 4, false));
  EXPECT_TRUE(should_hold(config, played(1, true), 4, true));
  EXPECT_FALSE(should_hold(config, played(0.1, true), 4, true));
}

}  // namespace
}  // namespace signalbox::dispatch
