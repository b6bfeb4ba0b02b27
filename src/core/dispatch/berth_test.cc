// SPDX-License-Identifier: Apache-2.0
// Where a prompt belongs.
#include "core/dispatch/berth.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace signalbox::dispatch {
namespace {

class BerthTest : public testing::Test {
 protected:
  static Passenger prompt(double tokens) {
    Passenger p;
    p.tokens = tokens;
    p.seconds = tokens * 1.4e-4;
    return p;
  }
  double cost(const Berth& berth, double tokens, double arrivals = 0) {
    return berth_cost(berth, prompt(tokens), instance_, {0.1, arrivals});
  }

  std::array<Rank, 8> ranks_;
  Instance instance_{ranks_, 8192, 0.06, 1.4e-4, 0};
  Berth idle_{0, 0.06, 0, true};
  Berth rolling_{0.6, 1.2, 2, true};  // begins in 0.6 s, with somebody long
};

TEST_F(BerthTest, AloneCostsWhatItTakes) {
  EXPECT_NEAR(cost(idle_, 1000), 0.06 + 0.14, 1e-9);
  EXPECT_NEAR(cost(rolling_, 1000), 0.6 + 1.2, 1e-9);
}

TEST_F(BerthTest, AShortPromptWaitsForAShortPass) {
  const Berth soon{0.9, 0.06, 0, true};
  EXPECT_LT(cost(soon, 1000, 10), cost(rolling_, 1000, 10));
}

TEST_F(BerthTest, ALongPromptGoesWherePassesAreLongOnceOthersCome) {
  EXPECT_LT(cost(idle_, 16'000), cost(rolling_, 16'000)) << "nobody else comes";
  EXPECT_GT(cost(idle_, 16'000, 10), cost(rolling_, 16'000, 10));
}

TEST_F(BerthTest, TheMoreInstancesAreBusyForLongTheMoreWaitForThisOne) {
  EXPECT_NEAR(share_that_waits(std::vector<Berth>{idle_, idle_}), 0.1, 1e-9);
  EXPECT_NEAR(share_that_waits(std::vector<Berth>{idle_, rolling_}), 0.35, 1e-9);
  EXPECT_NEAR(share_that_waits(std::vector<Berth>{rolling_, rolling_}), 0.6, 1e-9);
}

TEST_F(BerthTest, ItPaysForEveryPassThatItMakesLonger) {
  const double two = cost(idle_, 16'000, 10), three = cost(idle_, 24'000, 10);
  EXPECT_NEAR(three / two, 1.5, 0.02);
  const Berth long_for_longer{0.6, 1.3, 3, true};
  EXPECT_LT(cost(long_for_longer, 24'000, 10), cost(rolling_, 24'000, 10));
}

}  // namespace
}  // namespace signalbox::dispatch
