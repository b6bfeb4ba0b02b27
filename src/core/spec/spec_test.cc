// SPDX-License-Identifier: Apache-2.0
// Goal: what is written is what is read. Method: random configurations go through trees and back;
// small trees, built by hand, show single faults.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

#include "core/spec/config.h"

namespace signalbox::spec {
namespace {

Node text(std::string key, std::string value, bool quoted = true) {
  Node node;
  node.form = Node::Form::Scalar;
  node.key = std::move(key);
  node.text = std::move(value);
  node.quoted = quoted;
  return node;
}

Node block(std::string key, std::vector<Node> items) {
  Node node;
  node.form = Node::Form::Mapping;
  node.key = std::move(key);
  node.items = std::move(items);
  return node;
}

Document resource(const std::string& kind, const std::string& name, std::vector<Node> spec) {
  return {"t.yaml", block("", {text("apiVersion", std::string(kApiVersion)), text("kind", kind),
                               block("metadata", {text("name", name)}),
                               block("spec", std::move(spec))})};
}

RC_GTEST_PROP(Config, ReadsBackWhatItWrote, (std::uint64_t seed)) {
  Rng rng(seed, "config");
  const Config config = random(rng);
  Report report;
  const Config again = parse(to_documents(config), report);
  for (const Problem& problem : report.problems()) RC_LOG() << to_string(problem) << "\n";
  RC_ASSERT(report.clean());
  RC_ASSERT(again == config);
  RC_ASSERT(diff(config, again).empty());
}

RC_GTEST_PROP(Config, DiffersFromOthersExactlyWhenDiffSaysSo, (std::uint64_t a, std::uint64_t b)) {
  Rng first(a % 8, "config"), second(b % 8, "config");
  const Config one = random(first), other = random(second);
  RC_ASSERT(diff(one, other).empty() == (one == other));
}

TEST(Config, IsAllDefaultsWhenNothingIsWritten) {
  const auto config = parse({});
  ASSERT_TRUE(config);
  EXPECT_EQ(*config, Config{});
}

TEST(Config, HasNoMeaningInTheOrderOfDocuments) {
  const Document a = resource("Model", "a", {});
  const Document b = resource("Model", "b", {});
  EXPECT_EQ(*parse({a, b}), *parse({b, a}));
}

TEST(Config, CollectsAllProblems) {
  Report report;
  parse({resource("Model", "m", {text("parms_b", "7", false)}),
         resource("Pool", "p", {text("model", "n")})},
        report);
  ASSERT_EQ(report.problems().size(), 3u);
  EXPECT_EQ(report.problems()[0].message,
            "there is no setting `parms_b` here; did you mean `params_b`?");
  EXPECT_EQ(report.problems()[1].message,
            "`endpoints` is missing: URLs of the engines; a name with several addresses is"
            " several.");
  EXPECT_EQ(report.problems()[2].message, "there is no Model `n`; write `m`.");
  EXPECT_EQ(report.problems()[2].path, "Pool/p.spec.model");
}

TEST(Config, CountsProblemsBeyondTheLimit) {
  std::vector<Document> documents;
  for (int i = 0; i < 150; ++i) {
    documents.push_back(resource("Model", "m" + std::to_string(i), {text("x", "y")}));
  }
  const auto result = parse(documents);
  ASSERT_FALSE(result);
  EXPECT_TRUE(result.error().message.ends_with("\nand 50 more."));
}

TEST(Config, RangesOfNarrowTypesNeverOverflow) {
  const auto result = parse({resource("Model", "m", {text("context_tokens", "1e9", false)})});
  ASSERT_FALSE(result);
  const auto large = parse(
      {resource("Gateway", "g", {text("threads", "99999999999999999999", false)})});
  ASSERT_FALSE(large);
  EXPECT_NE(large.error().message.find("is too large a number"), std::string::npos);
}

TEST(Diff, NamesWhatWasAddedRemovedAndChanged) {
  Config before, after;
  before.models.resize(2);
  before.models[0].name = "gone";
  before.models[1].name = "kept";
  after.models.resize(2);
  after.models[0].name = "kept";
  after.models[0].params_b = 7;
  after.models[0].loras = {"x"};
  after.models[1].name = "new";
  after.gateway.limits.body = Bytes{16 << 20};
  Pool pool;
  pool.name = "p";
  pool.model.name = "kept";
  pool.endpoints = {{false, "10.0.0.1", 8000}, {false, "10.0.0.2", 8000}};
  before.pools = {pool};
  pool.endpoints = {{false, "10.0.0.2", 8000}, {false, "10.0.0.3", 8000}};
  pool.api_key = {SecretSource::From::Env, "UP"};
  after.pools = {pool};
  EXPECT_EQ(diff(before, after),
            (std::vector<std::string>{
                "Model/gone: removed",
                "Gateway/gateway.spec.limits.body: 8MiB -> 16MiB",
                "Model/kept.spec.params_b: 0 -> 7",
                "Model/kept.spec.loras: added x",
                "Model/new: added",
                "Pool/p.spec.endpoints: removed http://10.0.0.1:8000",
                "Pool/p.spec.endpoints: added http://10.0.0.3:8000",
                "Pool/p.spec.api_key.env: unset -> UP",
            }));
  EXPECT_TRUE(diff(after, after).empty());
}

TEST(Doubts, NameWhatTheCatalogueDoesNotKnow) {
  Config config;
  config.models.resize(2);
  config.models[0].name = "known";
  config.models[0].profile = "llama-3.1-70b";
  config.models[1].name = "other";
  config.models[1].profile = "Llama-3.1-70";
  config.pools.resize(2);
  config.pools[0].name = "a";
  config.pools[0].accelerator = "h100";
  config.pools[1].name = "b";
  config.pools[1].accelerator = "H10";
  config.pools[1].role = model::Role::Prefill;
  config.pools[0].precision = "fp8";
  config.pools[1].precision = "fp7";
  const std::vector<std::string> lines = doubts(config);
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[3].find("Pool/b.spec.precision: "), 0u) << lines[3];
  EXPECT_NE(lines[3].find("did you mean `fp8`?"), std::string::npos) << lines[3];
  EXPECT_EQ(lines[0].find("Model/other.spec.profile: "), 0u) << lines[0];
  EXPECT_NE(lines[0].find("did you mean `Llama-3.1-70B`?"), std::string::npos) << lines[0];
  EXPECT_EQ(lines[1].find("Pool/b.spec.role: "), 0u) << lines[1];
  EXPECT_EQ(lines[2].find("Pool/b.spec.accelerator: "), 0u) << lines[2];
  EXPECT_NE(lines[2].find("write one of `H100-SXM-80GB`"), std::string::npos) << lines[2];
}

TEST(Doubts, OfSettingsThatCannotDoWhatTheySay) {
  Config config;
  config.pools.resize(3);
  for (Pool& pool : config.pools) pool.model.name = "m";
  config.pools[0].name = "a";
  config.pools[0].accelerator = "H100-SXM-80GB";
  config.pools[1].name = "b";
  config.pools[2].name = "c";
  config.pools[2].model.name = "other";
  config.pools[2].dispatch = model::DispatchMode::Shuttle;
  config.routes.resize(1);
  config.routes[0].name = "r";
  config.routes[0].targets = {{{"m"}, 1}, {{"nobody"}, 1}};
  config.routes[0].fallback = {{"other"}, {"nobody"}};
  const std::vector<std::string> lines = doubts(config);
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[3].find("Route/r.spec.fallback: no Pool serves `nobody`"), 0u) << lines[3];
  EXPECT_EQ(lines[0].find("Pool/b.spec.accelerator is empty"), 0u) << lines[0];
  EXPECT_EQ(lines[1].find("Pool/c.spec.dispatch: "), 0u) << lines[1];
  EXPECT_EQ(lines[2].find("Route/r.spec.targets: no Pool serves `nobody`"), 0u) << lines[2];
  config.pools[2].ranks = 8;
  config.pools[1].model.name = "nobody";
  EXPECT_TRUE(doubts(config).empty());
}

TEST(Reload, KeepsWhatOnlyAStartCanChange) {
  Gateway running, next;
  next.listen = {"0.0.0.0", 80};
  next.admin.hosts = {"gw"};
  next.limits.body = Bytes{1 << 20};
  next.limits.decisions_kept = 5;
  next.cache.chain_nodes_max = 7;
  next.routing.tie_band = 0.5;
  EXPECT_EQ(keep_until_start(next, running),
            (std::vector<std::string>{"Gateway.listen", "Gateway.limits.decisions_kept",
                                      "Gateway.cache"}));
  Gateway expected;
  expected.admin.hosts = {"gw"};
  expected.limits.body = Bytes{1 << 20};
  expected.routing.tie_band = 0.5;
  EXPECT_EQ(next, expected);
  EXPECT_TRUE(keep_until_start(next, running).empty());
}

TEST(Report, PutsAProblemAtTheNearestPlaceThatWasWritten) {
  Report report;
  report.record("Pool/a.b", {"f", 3, 1});
  report.record("Pool/a.b.spec", {"f", 5, 3});
  EXPECT_EQ(report.place_of("Pool/a.b.spec.tls.ca").line, 5);
  EXPECT_EQ(report.place_of("Pool/a.b.spec.endpoints[4]").line, 5);
  EXPECT_EQ(report.place_of("Pool/a.b.x").line, 3);
  EXPECT_EQ(report.place_of("Model/z").line, 0);
}

}  // namespace
}  // namespace signalbox::spec
