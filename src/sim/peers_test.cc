// SPDX-License-Identifier: Apache-2.0
// Goal: every peer runs in the world to the end, with the world's checkers on, the same every time,
// and shows what its rule is for. Method: whole runs on a load that shares prefixes, and random
// scenarios with every fault.
#include <gtest/gtest.h>

#include <map>

#include "sim/peers/registry.h"
#include "sim/run.h"

namespace signalbox::sim {
namespace {

class Peers : public testing::TestWithParam<std::string_view> {
 protected:
  std::string policy() const { return std::string(GetParam()); }
};

// Four engines near two thirds of what they can do; sixty system prompts and follow-ups.
Scenario shared_prefixes(const std::string& policy) {
  Scenario s;
  s.seed = 21;
  s.policy = policy;
  s.groups[0].count = 4;
  s.groups[0].spec.kv_tokens = 100'000;
  s.load.requests = 800;
  s.load.sessions_per_second = 5;
  s.load.system = {2000, 0.4, 300, 5000};
  s.load.system_prompts = 60;
  s.load.turn = {300, 0.6, 20, 2000};
  s.load.answer = {80, 0.6, 1, 500};
  s.load.follow_up = 0.7;
  s.load.leavers = 0;
  s.load.plain = 0;
  return s;
}

TEST_P(Peers, RunsToTheEndAndTheSameAgain) {
  const Scenario s = shared_prefixes(policy());
  const Report first = run(s);
  EXPECT_TRUE(first.violations.empty()) << text(first);
  EXPECT_EQ(first.count(model::Outcome::Completed), 800u) << text(first);
  const Report second = run(s);
  EXPECT_EQ(first.digest, second.digest);
  EXPECT_EQ(text(first), text(second));
  Scenario other = s;
  ++other.seed;
  EXPECT_NE(run(other).digest, first.digest);
}

TEST_P(Peers, KeepsTheWorldsInvariantsUnderEveryFault) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    Scenario s = random_scenario(seed, 400);
    s.policy = policy();
    s.cache_event_loss = seed % 3 == 0 ? 0.1 : 0;
    const Report report = run(s);
    EXPECT_TRUE(report.violations.empty()) << text(report);
    EXPECT_GT(report.arrived, 0u);
  }
}

std::vector<std::string_view> names() {
  std::vector<std::string_view> names;
  for (const peers::Peer& peer : peers::all()) names.push_back(peer.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, Peers, testing::ValuesIn(names()), [](const auto& which) {
  std::string name(which.param);
  for (char& c : name) {
    if (c == '-') c = '_';
  }
  return name;
});

TEST(PeersTogether, WhoKnowsPrefixesFindsThemAgain) {
  std::map<std::string_view, double> hit;
  for (const peers::Peer& peer : peers::all()) {
    hit[peer.name] = run(shared_prefixes(std::string(peer.name))).cache_hit();
  }
  for (const std::string_view aware : {"session-hash", "smg-cache-aware", "llmd-blend",
                                       "llmd-sticky", "mooncake", "lmetric", "preble"}) {
    EXPECT_GT(hit[aware], hit["random"] + 0.15) << aware;
  }
  for (const std::string_view some : {"prefix-hash", "dynamo"}) {
    EXPECT_GT(hit[some], hit["random"] + 0.05) << some;
  }
}

TEST(PeersTogether, SmgTriesAgainWhereOthersDoNot) {
  Scenario s = shared_prefixes("round-robin");
  s.load.plain = 1;  // nothing was delivered, so everything can be tried again
  s.load.sdk.retries_max = 0;
  s.faults.push_back({Fault::Kind::Die, Instant{} + std::chrono::seconds(10),
                      std::chrono::seconds(20), 0, 1});
  const Report smg = run(s);
  s.policy = "vllm-dp";
  const Report none = run(s);
  EXPECT_GT(smg.retries, 0u);
  EXPECT_EQ(none.retries, 0u);
  EXPECT_GT(smg.count(model::Outcome::Completed), none.count(model::Outcome::Completed));
}

}  // namespace
}  // namespace signalbox::sim
