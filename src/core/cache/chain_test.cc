// SPDX-License-Identifier: Apache-2.0
// Goal: chains identify content, order and seed. Method: small prompts, compared.
#include "core/cache/chain.h"

#include <gtest/gtest.h>

#include <set>

namespace signalbox::cache {
namespace {

using model::PromptBlock;
using model::PromptNode;

std::vector<PromptNode> make(const Seed& seed, std::vector<PromptBlock> tools,
                             std::vector<PromptBlock> messages) {
  std::vector<PromptNode> out = {{7, 7}};
  chain(seed, tools, messages, out);
  return out;
}

TEST(Chain, AddsBytesFromTheStart) {
  const auto nodes = make({}, {{1, 10}}, {{2, 5}, {3, 0}});
  ASSERT_EQ(nodes.size(), 3u);
  EXPECT_EQ(nodes[0].bytes, 10);
  EXPECT_EQ(nodes[1].bytes, 15);
  EXPECT_EQ(nodes[2].bytes, 15);
}

TEST(Chain, SharesExactlyTheCommonBeginning) {
  const auto a = make({}, {{1, 1}}, {{2, 1}, {3, 1}, {4, 1}});
  const auto b = make({}, {{1, 1}}, {{2, 1}, {9, 1}, {4, 1}});
  EXPECT_EQ(a[0].hash, b[0].hash);
  EXPECT_EQ(a[1].hash, b[1].hash);
  EXPECT_NE(a[2].hash, b[2].hash);
  EXPECT_NE(a[3].hash, b[3].hash) << "equal blocks behind different ones are different prefixes";
}

TEST(Chain, DiffersForEveryPartOfTheSeed) {
  std::set<std::uint64_t> hashes;
  for (const Seed& seed : {Seed{}, Seed{.domain = 1}, Seed{.model = model::ModelId(1)},
                           Seed{.lora = 1}, Seed{.template_args = 1}}) {
    hashes.insert(make(seed, {}, {{2, 1}})[0].hash);
  }
  EXPECT_EQ(hashes.size(), 5u);
}

TEST(Chain, TellsAToolFromAMessage) {
  EXPECT_NE(make({}, {{1, 1}}, {})[0].hash, make({}, {}, {{1, 1}})[0].hash);
}

TEST(Chain, OfNothingIsEmpty) { EXPECT_TRUE(make({}, {}, {}).empty()); }

}  // namespace
}  // namespace signalbox::cache
