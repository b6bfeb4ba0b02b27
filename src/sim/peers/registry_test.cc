// SPDX-License-Identifier: Apache-2.0
// Goal: every peer is found by its name, and a wrong name is answered with those there are.
// Method: the list itself; a profile measured from a table whose coefficients are known.
#include "sim/peers/registry.h"

#include <gtest/gtest.h>

#include <set>

namespace signalbox::peers {
namespace {

TEST(Registry, FindsEveryPeerByItsName) {
  std::set<std::string_view> names;
  for (const Peer& peer : all()) {
    EXPECT_TRUE(names.insert(peer.name).second);
    EXPECT_FALSE(peer.source.empty());
    const Result<Peer> found = find(peer.name);
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->name, peer.name);
    EXPECT_NE(found->make(), nullptr);
  }
  EXPECT_EQ(names.size(), 15u);
}

TEST(Registry, AnUnknownNameListsThoseThereAre) {
  const Result<Peer> found = find("dynamit");
  ASSERT_FALSE(found.has_value());
  EXPECT_NE(found.error().message.find("dynamit"), std::string::npos);
  for (const Peer& peer : all()) {
    EXPECT_NE(found.error().message.find(peer.name), std::string::npos);
  }
}

TEST(Profile, FindsTheCoefficientsOfAFormula) {
  truth::EngineSpec spec;
  spec.table = truth::StepTable::formula(12, 0.03, 2e-6, 8, 0.1, 4e-5);
  spec.block_tokens = 32;
  const Profile profile = measure(spec);
  EXPECT_EQ(profile.block_tokens, 32);
  EXPECT_NEAR(profile.a, 0.012, 0.002);
  EXPECT_NEAR(profile.b, 3e-5, 1e-6);
  EXPECT_NEAR(profile.c, 2e-9, 1e-10);
  EXPECT_NEAR(profile.prefill_seconds(1'000, 4'000), 0.012 + 0.03 + 2e-9 * 1'000 * 4'500, 0.002);
  EXPECT_NEAR(profile.peak_prefill(), 8'192 / profile.prefill_seconds(8'192, 0), 1e-9);
}

}  // namespace
}  // namespace signalbox::peers
