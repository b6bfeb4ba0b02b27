// SPDX-License-Identifier: Apache-2.0
// Goal: what the index says after each kind of knowledge. Method: short chains of named nodes.
#include "core/cache/prefix_index.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "base/rng.h"
#include "core/cache/chain.h"

namespace signalbox::cache {
namespace {

using model::EndpointId;
using model::ModelId;
using model::PromptNode;

const EndpointId kA(1), kB(2), kC(3);

// A prompt of blocks of 2,048 bytes, named by letters: equal beginnings are equal prefixes.
struct Prompt {
  explicit Prompt(std::string_view names) {
    std::vector<model::PromptBlock> blocks;
    for (const char c : names) blocks.push_back({static_cast<std::uint64_t>(c), 2048});
    chain(Seed{}, {}, blocks, nodes);
  }
  operator Query() const {  // NOLINT: reads as the query in the tests
    return {ModelId(1), nodes, static_cast<std::int64_t>(nodes.size()) * 2048,
            model::Script::Latin};
  }
  std::vector<PromptNode> nodes;
};

// An index that knows fifty endpoints.
struct Index : PrefixIndex {
  explicit Index(const Config& config = {}) : PrefixIndex(config) {
    for (std::uint32_t e = 1; e <= 50; ++e) add(EndpointId(e));
  }
};

std::int64_t cached(const PrefixIndex& index, std::string_view names, EndpointId endpoint) {
  return index.lookup(Prompt(names)).cached_tokens(endpoint);
}
std::int64_t tokens(std::size_t blocks) {
  return TokenEstimate().tokens(ModelId(1), model::Script::Latin, 2048) *
         static_cast<std::int64_t>(blocks);
}

TEST(PrefixIndex, KnowsNothingAtFirst) {
  const Index index;
  const Match match = index.lookup(Prompt("abc"));
  EXPECT_TRUE(match.levels.empty());
  EXPECT_FALSE(match.exact);
  EXPECT_NEAR(static_cast<double>(match.prompt_tokens), static_cast<double>(tokens(3)), 3);
}

TEST(PrefixIndex, ListsDeepHoldersFirst) {
  Index index;
  index.insert(kB, Prompt("ab"), Residence::Held);
  index.insert(kA, Prompt("abcd"), Residence::Held);
  index.insert(kC, Prompt("abx"), Residence::Held);
  const Match match = index.lookup(Prompt("abcde"));
  ASSERT_EQ(match.levels.size(), 2u);
  EXPECT_EQ(match.levels[0].tokens, tokens(4));
  ASSERT_EQ(match.levels[0].holders.size(), 1u);
  EXPECT_EQ(match.levels[0].holders[0], kA);
  EXPECT_EQ(match.levels[1].tokens, tokens(2));
  ASSERT_EQ(match.levels[1].holders.size(), 3u);
  EXPECT_EQ(match.cached_tokens(kA), tokens(4));
  EXPECT_EQ(match.cached_tokens(kC), tokens(2));
}

TEST(PrefixIndex, CountsWhatIsOnItsWayUntilItIsWithdrawn) {
  Index index;
  index.insert(kA, Prompt("ab"), Residence::Held);
  index.insert(kA, Prompt("abcd"), Residence::Pending);
  EXPECT_EQ(cached(index, "abcd", kA), tokens(4));
  index.withdraw(kA, Prompt("abcd"));
  EXPECT_EQ(cached(index, "abcd", kA), tokens(2));
}

TEST(PrefixIndex, WithdrawsNothingThatWasConfirmed) {
  Index index;
  index.insert(kA, Prompt("abcd"), Residence::Pending);
  index.insert(kA, Prompt("abc"), Residence::Held);
  index.withdraw(kA, Prompt("abcd"));
  EXPECT_EQ(cached(index, "abcd", kA), tokens(3));
  index.withdraw(kA, Prompt("abcd"));
  EXPECT_EQ(cached(index, "abcd", kA), tokens(3));
}

TEST(PrefixIndex, TellsExactLengthsOnceUsageDid) {
  Index index;
  const Prompt prompt("abcd");
  index.insert(kA, prompt, Residence::Held);
  index.learn(prompt, 1000);
  const Match match = index.lookup(prompt);
  EXPECT_TRUE(match.exact);
  EXPECT_EQ(match.prompt_tokens, 1000);
  EXPECT_EQ(match.cached_tokens(kA), 1000);
  EXPECT_EQ(cached(index, "abx", kA), 500) << "interpolated by bytes";
  EXPECT_EQ(index.held_tokens(kA), 1000);
  index.insert(kA, Prompt("abcdef"), Residence::Held);
  index.learn(Prompt("abcdef"), 2000);
  EXPECT_EQ(cached(index, "abcde", kA), 1500) << "between two known counts";
  EXPECT_EQ(cached(index, "abcd", kA), 1000);
}

TEST(PrefixIndex, EvictsLeavesBeforeParentsInOrderOfLastUse) {
  Index index;
  index.insert(kA, Prompt("abc"), Residence::Held);
  index.insert(kA, Prompt("axy"), Residence::Held);
  index.insert(kA, Prompt("abd"), Residence::Held);  // abc now older than axy
  index.set_capacity(kA, tokens(5));
  EXPECT_EQ(cached(index, "abc", kA), tokens(2));
  EXPECT_EQ(cached(index, "axy", kA), tokens(3));
  index.set_capacity(kA, tokens(4));
  EXPECT_EQ(cached(index, "axy", kA), tokens(2));
  index.set_capacity(kA, tokens(3));
  EXPECT_EQ(cached(index, "axy", kA), tokens(1));
  EXPECT_EQ(cached(index, "abd", kA), tokens(3));
  index.set_capacity(kA, tokens(1));
  EXPECT_EQ(cached(index, "abd", kA), tokens(1));
  EXPECT_EQ(index.held_tokens(kA), tokens(1));
}

TEST(PrefixIndex, KeepsTheBeginningOfAPromptThatDoesNotFit) {
  Index index;
  index.set_capacity(kA, tokens(3));
  index.insert(kA, Prompt("abcdef"), Residence::Held);
  EXPECT_EQ(cached(index, "abcdef", kA), tokens(3));
}

TEST(PrefixIndex, LosesDeeperNodesWhenTheEngineHadLess) {
  Index index;
  index.set_capacity(kA, tokens(20));
  index.insert(kA, Prompt("abcd"), Residence::Held);
  index.insert(kA, Prompt("abcx"), Residence::Held);
  index.observe_cached(kA, Prompt("abcd"), tokens(4), tokens(2));
  EXPECT_EQ(cached(index, "abcd", kA), tokens(2));
  EXPECT_EQ(cached(index, "abcx", kA), tokens(2)) << "whoever lost a node lost what follows it";
  EXPECT_LT(index.believed_capacity(kA), tokens(20));
  EXPECT_EQ(index.stats().losses_corrected, 1u);
}

TEST(PrefixIndex, GainsNodesWhenTheEngineHadMore) {
  Index index;
  index.insert(kA, Prompt("a"), Residence::Held);
  index.observe_cached(kA, Prompt("abcd"), tokens(1), tokens(3));
  EXPECT_EQ(cached(index, "abcd", kA), tokens(3));
  EXPECT_EQ(index.stats().gains_corrected, 1u);
}

TEST(PrefixIndex, TakesBlocksRoundedDownForAgreement) {
  Index index;
  index.insert(kA, Prompt("abcd"), Residence::Held);
  index.observe_cached(kA, Prompt("abcd"), tokens(4), tokens(4) - 17);
  EXPECT_EQ(cached(index, "abcd", kA), tokens(4));
  EXPECT_EQ(index.stats().losses_corrected, 0u);
}

TEST(PrefixIndex, TellsWhatItWasSureOfFromWhatItHopedFor) {
  Index index;
  EXPECT_EQ(index.insert(kA, Prompt("ab"), Residence::Held).hoped, 0);
  index.insert(kA, Prompt("abcd"), Residence::Pending);
  const Belief belief = index.insert(kA, Prompt("abcdef"), Residence::Pending);
  EXPECT_EQ(belief.sure, tokens(2));
  EXPECT_EQ(belief.hoped, tokens(4));
  index.set_capacity(kA, tokens(20));
  index.observe_cached(kA, Prompt("abcdef"), belief, tokens(2));
  EXPECT_EQ(index.believed_capacity(kA), tokens(20)) << "a burst started together";
  EXPECT_EQ(cached(index, "abcdef", kA), tokens(6));
}

TEST(PrefixIndex, ShrinksToAnEngineThatHoldsLessThanItTells) {
  // The engine is an index of its own, with half the capacity that ours was told.
  Index ours;
  Index engine;
  ours.set_capacity(kA, tokens(800));
  engine.set_capacity(kA, tokens(400));
  Rng rng(3, "sessions");
  double wrong_early = 0;
  double wrong_late = 0;
  for (int i = 0; i < 6000; ++i) {
    std::string names(1, static_cast<char>('A' + rng.below(100)));
    names.append(1 + rng.below(15), 'x');
    const Prompt prompt(names);
    const auto found = engine.lookup(prompt).cached_tokens(kA);
    engine.insert(kA, prompt, Residence::Held);
    const Belief belief = ours.insert(kA, prompt, Residence::Pending);
    ours.observe_cached(kA, prompt, belief, found);
    ours.insert(kA, prompt, Residence::Held);
    const auto wrong = static_cast<double>(std::abs(belief.sure - found));
    if (i < 500) wrong_early += wrong;
    if (i >= 5500) wrong_late += wrong;
  }
  EXPECT_LT(wrong_late, wrong_early / 2);
  EXPECT_LT(ours.believed_capacity(kA), tokens(520));
  EXPECT_GT(ours.believed_capacity(kA), tokens(320));
}

TEST(PrefixIndex, ForgetsARestartedEngineAlone) {
  Index index;
  index.insert(kA, Prompt("abcd"), Residence::Held);
  index.insert(kB, Prompt("abc"), Residence::Held);
  index.clear(kA);
  EXPECT_EQ(cached(index, "abcd", kA), 0);
  EXPECT_EQ(cached(index, "abcd", kB), tokens(3));
  EXPECT_EQ(index.held_tokens(kA), 0);
}

TEST(PrefixIndex, ClearsInSlices) {
  Index index;
  index.insert(kA, Prompt("abcdefgh"), Residence::Held);
  EXPECT_FALSE(index.clear_some(kA, 5));
  EXPECT_EQ(cached(index, "abcdefgh", kA), tokens(3));
  EXPECT_TRUE(index.clear_some(kA, 5));
  EXPECT_EQ(index.stats().nodes, 0u);
}

TEST(PrefixIndex, ShrinksInSlicesWhenTheCapacityDrops) {
  Index index;
  Rng rng(1, "slices");
  Prompt prompt("");
  for (int i = 0; i < 1500; ++i) {
    prompt.nodes = {{rng.next(), 2048}, {rng.next(), 4096}};
    index.insert(kA, prompt, Residence::Held);
  }
  index.set_capacity(kA, tokens(10));
  EXPECT_EQ(index.held_tokens(kA), tokens(3000 - PrefixIndex::kSlice)) << "bounded work a call";
  for (int i = 0; i < 40; ++i) index.insert(kA, prompt, Residence::Held);
  EXPECT_EQ(index.held_tokens(kA), tokens(10)) << "the rest follows";
}

TEST(PrefixIndex, TakesExactEvictionsOfASource) {
  Index index;
  const Prompt prompt("abcd");
  index.insert(kA, prompt, Residence::Held);
  index.evict(kA, prompt.nodes[2].hash, 2);
  index.evict(kA, prompt.nodes[3].hash, 3);
  index.evict(kB, prompt.nodes[1].hash, 1);
  EXPECT_EQ(cached(index, "abcd", kA), tokens(2));
}

TEST(PrefixIndex, IgnoresCutsBeyondTheLimit) {
  Index index{Config{.index_bytes_max = {64 << 20}, .chain_nodes_max = 3}};
  index.insert(kA, Prompt("abcdef"), Residence::Held);
  EXPECT_EQ(index.stats().nodes, 3u);
  index.learn(Prompt("abcdef"), 6000);
  const Match match = index.lookup(Prompt("abcdef"));
  EXPECT_FALSE(match.exact);
  EXPECT_GT(match.prompt_tokens, match.cached_tokens(kA));
}

TEST(PrefixIndex, IsEmptyAfterEverybodyLeft) {
  Index index;
  for (std::uint32_t e = 1; e <= 50; ++e) {
    index.insert(EndpointId(e), Prompt("abcdef"), Residence::Held);
    index.insert(EndpointId(e), Prompt("abxy"), Residence::Pending);
  }
  for (std::uint32_t e = 1; e <= 50; ++e) index.remove(EndpointId(e));
  const Stats stats = index.stats();
  EXPECT_EQ(stats.nodes, 0u);
  EXPECT_EQ(stats.residencies, 0u);
  EXPECT_EQ(stats.endpoints, 0u);
}

TEST(PrefixIndex, DoesNotBringBackAnEndpointThatLeft) {
  Index index;
  const Prompt prompt("abc");
  index.insert(kA, prompt, Residence::Pending);
  index.remove(kA);
  index.insert(kA, prompt, Residence::Held);
  index.observe_cached(kA, prompt, 0, 1000);
  index.set_capacity(kA, 1000);
  EXPECT_TRUE(index.lookup(prompt).levels.empty());
  EXPECT_EQ(index.stats().endpoints, 49u);
}

TEST(PrefixIndex, StaysWithinItsMemoryUnderChurnOfUniquePrompts) {
  constexpr std::int64_t kLimit = 8 << 20;
  Index index{Config{.index_bytes_max = {kLimit}, .chain_nodes_max = 2048}};
  Rng rng(1, "churn");
  Prompt prompt("");
  for (int i = 0; i < 5'000; ++i) {
    prompt.nodes.clear();
    const auto cuts = 1 + rng.below(30);
    for (std::uint64_t k = 0; k < cuts; ++k) {
      prompt.nodes.push_back({rng.next(), static_cast<std::int64_t>(k + 1) * 2048});
    }
    const auto copies = rng.chance(0.1) ? 20u : 1u;
    for (std::uint32_t e = 1; e <= copies; ++e) {
      index.insert(EndpointId(e), prompt, Residence::Held);
    }
    if (i % 1000 == 0) {
      ASSERT_LE(index.stats().bytes, static_cast<std::size_t>(kLimit)) << i;
    }
  }
  EXPECT_GT(index.stats().memory_evictions, 20'000u);
  EXPECT_GT(index.stats().nodes, 20'000u) << "the memory is used";
  EXPECT_EQ(index.lookup(prompt).levels.size(), 1u) << "the newest is still there";
}

TEST(PrefixIndex, RefusesAHashThatBelongsToOtherContent) {
  Index index;
  Prompt a("abc");
  Prompt b("xyz");
  b.nodes[2].hash = a.nodes[2].hash;
  index.insert(kA, a, Residence::Held);
  index.insert(kB, b, Residence::Held);
  EXPECT_EQ(cached(index, "abc", kB), 0);
  EXPECT_EQ(cached(index, "xy", kB), tokens(2));
}

}  // namespace
}  // namespace signalbox::cache
