// SPDX-License-Identifier: Apache-2.0
// Goal: the fleet is what was declared, and ids stay with their names. Method: small
// configurations, compiled again and again through one directory.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "core/spec/compile.h"

namespace signalbox::spec {
namespace {

Pool pool(std::string name, std::string model, std::vector<std::string> urls) {
  Pool out;
  out.name = std::move(name);
  out.model.name = std::move(model);
  for (const std::string& url : urls) out.endpoints.push_back(*parse_url(url));
  return out;
}

Config two_pools() {
  Config config;
  config.models.resize(2);
  config.models[0].name = "a";
  config.models[1].name = "b";
  config.models[1].public_name = "B";
  config.pools = {pool("p", "a", {"http://10.0.0.1:8000", "http://10.0.0.2:8000"}),
                  pool("q", "b", {"https://engines.example"})};
  return config;
}

TEST(Compile, GivesEveryModelARouteOfItsName) {
  Config config = two_pools();
  Route route;
  route.name = "B";
  route.targets = {{{"a"}, 3}, {{"b"}, 1}};
  route.fallback = {{"a"}};
  config.routes = {route};
  Directory directory;
  const Compiled out = compile(config, directory, {});
  ASSERT_EQ(out.fleet.routes.size(), 2u);
  EXPECT_EQ(out.fleet.routes[0].name, "B");
  EXPECT_EQ(out.fleet.routes[0].targets.size(), 2u);
  EXPECT_EQ(out.fleet.routes[0].fallback, std::vector{directory.model("a")});
  EXPECT_EQ(out.fleet.routes[1].name, "a");
  EXPECT_EQ(out.fleet.routes[1].targets[0].model, directory.model("a"));
}

TEST(Compile, MakesAnEndpointOfEachAddressAndRank) {
  Config config = two_pools();
  config.pools[1].ranks = 2;
  Directory directory;
  const Resolved resolved{
      {"engines.example:443", {"10.1.0.2:443", "10.1.0.1:443", "10.1.0.1:443"}}};
  const Compiled out = compile(config, directory, resolved);
  std::vector<std::string> seen;
  for (const auto& e : out.fleet.endpoints) {
    seen.push_back(e.address + "/" + std::to_string(e.rank) + (e.tls ? " tls" : ""));
  }
  EXPECT_EQ(seen, (std::vector<std::string>{"10.0.0.1:8000/-1", "10.0.0.2:8000/-1",
                                            "10.1.0.1:443/0 tls", "10.1.0.1:443/1 tls",
                                            "10.1.0.2:443/0 tls", "10.1.0.2:443/1 tls"}));
  ASSERT_EQ(out.origins.size(), 6u);
  EXPECT_EQ(out.origins[5].url.host, "engines.example");
  EXPECT_EQ(out.origins[5].id, out.fleet.endpoints[5].id);
  EXPECT_TRUE(out.notes.empty());
}

TEST(Compile, LeavesOutAddressesThatNoUpstreamMayHave) {
  Directory directory;
  const Resolved resolved{
      {"engines.example:443", {"169.254.169.254:443", "[::ffff:169.254.169.254]:443", "junk"}}};
  const Compiled out = compile(two_pools(), directory, resolved);
  EXPECT_EQ(out.fleet.endpoints.size(), 2u);
  ASSERT_EQ(out.notes.size(), 3u);
  EXPECT_EQ(out.notes[0],
            "Pool/q: engines.example:443 stands for 169.254.169.254:443, which is a link-local or"
            " cloud metadata address; it is left out.");
}

TEST(Compile, SaysWhichNamesHaveNoAddress) {
  const Config config = two_pools();
  EXPECT_EQ(unresolved(config), std::vector<std::string>{"engines.example:443"});
  Directory directory;
  EXPECT_EQ(compile(config, directory, {}).notes,
            std::vector<std::string>{"Pool/q: engines.example:443 has no address at present."});
}

TEST(Directory, KeepsIdsAcrossReloads) {
  Directory directory;
  Config config = two_pools();
  const auto before = compile(config, directory, {}).fleet;
  config.pools.push_back(pool("z", "a", {"http://10.0.0.9:8000"}));
  const auto more = compile(config, directory, {}).fleet;
  const auto after = compile(two_pools(), directory, {}).fleet;
  ASSERT_EQ(after.pools.size(), before.pools.size());
  for (std::size_t i = 0; i < after.pools.size(); ++i) {
    EXPECT_EQ(after.pools[i].id, before.pools[i].id);
    EXPECT_EQ(after.pools[i].name, before.pools[i].name);
  }
  ASSERT_EQ(after.endpoints.size(), before.endpoints.size());
  for (std::size_t i = 0; i < after.endpoints.size(); ++i) {
    EXPECT_EQ(after.endpoints[i].id, before.endpoints[i].id);
  }
  EXPECT_EQ(more.pools.size(), before.pools.size() + 1);
}

// Requests of the earlier life may still run: their books are closed, and stay apart.
TEST(Directory, WhatLeftAndComesBackIsAnother) {
  Directory directory;
  const auto before = compile(two_pools(), directory, {}).fleet;
  Config config = two_pools();
  config.pools.erase(config.pools.begin());
  compile(config, directory, {});
  const auto after = compile(two_pools(), directory, {}).fleet;
  const auto ids = [](const model::Fleet& fleet) {
    std::map<std::string, model::PoolId> found;
    for (const auto& p : fleet.pools) found[p.name] = p.id;
    return found;
  };
  const std::string back = two_pools().pools[0].name;
  for (const auto& [name, id] : ids(after)) {
    EXPECT_EQ(id == ids(before).at(name), name != back) << name;
  }
  for (const auto& e : after.endpoints) {
    const bool known = std::ranges::any_of(
        before.endpoints, [&](const model::Endpoint& b) { return b.id == e.id; });
    EXPECT_EQ(known, e.pool != ids(after).at(back)) << e.address;
  }
}

TEST(Directory, ForgetsOldNamesButNotTheirIds) {
  IdTable<int, model::ModelId> table;
  for (int i = 0; i < 100; ++i) table.get(i, static_cast<std::uint64_t>(i + 1));
  table.prune(101, 10);
  EXPECT_EQ(table.size(), 10u);
  EXPECT_EQ(table.get(99, 101).value(), 100u);
  EXPECT_EQ(table.get(0, 101).value(), 101u);
}

RC_GTEST_PROP(Compile, OrdersEverythingByIdAndRefersToWhatExists, (std::uint64_t seed)) {
  Rng rng(seed, "config");
  Directory directory;
  std::map<std::string, model::PoolId> ids;  // as of the last round
  for (int round = 0; round < 3; ++round) {
    const Config config = random(rng);
    Resolved resolved;
    for (const auto& name : unresolved(config)) resolved[name] = {"10.9.9.9:80"};
    const auto fleet = compile(config, directory, resolved).fleet;
    const auto ordered = [](const auto& list) {
      return std::adjacent_find(list.begin(), list.end(), [](const auto& a, const auto& b) {
               return a.id >= b.id;
             }) == list.end();
    };
    RC_ASSERT(ordered(fleet.models) && ordered(fleet.pools) && ordered(fleet.endpoints));
    RC_ASSERT(ordered(fleet.tenants) && ordered(fleet.objectives) && ordered(fleet.routes));
    const auto has_model = [&](model::ModelId id) {
      return std::any_of(fleet.models.begin(), fleet.models.end(),
                         [&](const auto& m) { return m.id == id; });
    };
    std::map<std::string, model::PoolId> now;
    for (const auto& p : fleet.pools) {
      RC_ASSERT(has_model(p.model));
      RC_ASSERT(!ids.contains(p.name) || ids[p.name] == p.id);
      now[p.name] = p.id;
    }
    ids = std::move(now);
    for (const auto& r : fleet.routes) {
      RC_ASSERT(!r.targets.empty());
      for (const auto& t : r.targets) RC_ASSERT(has_model(t.model));
    }
  }
}

}  // namespace
}  // namespace signalbox::spec
