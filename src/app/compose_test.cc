// SPDX-License-Identifier: Apache-2.0
// Goal: zero configuration makes one Model per model id and one Pool per model and kind of engine,
// whatever the order of addresses, and names that the configuration accepts. Method: findings made
// by hand; the composed configuration is checked as a written one would be.
#include "app/compose.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "app/table.h"

namespace signalbox::app {
namespace {

using model::EngineKind;

spec::Url url(const std::string& host, std::uint16_t port) {
  return *spec::parse_url("http://" + host + ":" + std::to_string(port));
}

engine::Discovery serving(EngineKind kind, const std::vector<std::string>& ids) {
  engine::Discovery found;
  found.kind = kind;
  for (const std::string& id : ids) {
    engine::ModelInfo info;
    info.id = id;
    info.context_tokens = 4096;
    found.facts.models.push_back(info);
  }
  return found;
}

std::vector<std::string> names(const auto& list) {
  std::vector<std::string> out;
  for (const auto& entry : list) out.push_back(entry.name);
  return out;
}

using Names = std::vector<std::string>;

TEST(Compose, groups_endpoints_by_model_and_kind_of_engine) {
  const std::vector<spec::Url> addresses = {url("127.0.0.1", 1), url("127.0.0.1", 2),
                                            url("127.0.0.1", 3), url("127.0.0.1", 4),
                                            url("127.0.0.1", 9)};
  const std::map<std::string, engine::Discovery> found = {
      {"127.0.0.1:1", serving(EngineKind::Vllm, {"meta/Llama-3"})},
      {"127.0.0.1:2", serving(EngineKind::LlamaCpp, {"meta/Llama-3"})},
      {"127.0.0.1:3", serving(EngineKind::Vllm, {"meta/Llama-3"})},
      {"127.0.0.1:4", serving(EngineKind::Vllm, {"tiny"})}};
  spec::Config config;
  compose(config, addresses, found);
  EXPECT_EQ(names(config.models), (Names{"meta-llama-3", "tiny"}));
  EXPECT_EQ(config.models[0].public_name, "meta/Llama-3");
  EXPECT_EQ(config.models[0].context_tokens, 4096);
  EXPECT_EQ(config.models[1].public_name, "");  // its name is a resource's already
  ASSERT_EQ(names(config.pools),
            (Names{"meta-llama-3-llamacpp", "meta-llama-3-vllm", "tiny-vllm"}));
  EXPECT_EQ(config.pools[1].endpoints, (std::vector<spec::Url>{addresses[0], addresses[2]}));
  EXPECT_EQ(config.pools[1].engine, EngineKind::Vllm);
  EXPECT_EQ(config.pools[1].model.name, "meta-llama-3");
  spec::Report report;
  spec::check(config, report);
  EXPECT_TRUE(report.problems().empty());
}

TEST(Compose, an_address_given_twice_is_one_endpoint_and_an_unknown_one_is_none) {
  spec::Config config;
  compose(config, {url("127.0.0.1", 1), url("127.0.0.1", 1), url("127.0.0.1", 2)},
          {{"127.0.0.1:1", serving(EngineKind::Vllm, {"m"})}});
  ASSERT_EQ(config.pools.size(), 1u);
  EXPECT_EQ(config.pools[0].endpoints.size(), 1u);
}

TEST(Compose, adapters_belong_to_their_base_model) {
  engine::Discovery found = serving(EngineKind::Vllm, {"base", "french", "german"});
  found.facts.models[1].parent = found.facts.models[2].parent = "base";
  spec::Config config;
  compose(config, {url("127.0.0.1", 1)}, {{"127.0.0.1:1", found}});
  EXPECT_EQ(names(config.models), Names{"base"});
  EXPECT_EQ(config.models[0].loras, (Names{"french", "german"}));
  EXPECT_EQ(config.pools.size(), 1u);
}

TEST(Compose, an_adapter_that_only_a_later_engine_lists_is_offered_too) {
  engine::Discovery first = serving(EngineKind::Vllm, {"base", "french"});
  engine::Discovery second = serving(EngineKind::LlamaCpp, {"base", "german", "french"});
  first.facts.models[1].parent = "base";
  second.facts.models[1].parent = second.facts.models[2].parent = "base";
  spec::Config config;
  compose(config, {url("127.0.0.1", 1), url("127.0.0.1", 2), url("127.0.0.1", 3)},
          {{"127.0.0.1:1", serving(EngineKind::Vllm, {"base"})},
           {"127.0.0.1:2", first},
           {"127.0.0.1:3", second}});
  ASSERT_EQ(config.models.size(), 1u);
  EXPECT_EQ(config.models[0].loras, (Names{"french", "german"}));
}

TEST(Compose, an_engine_with_several_models_is_in_a_pool_of_each) {
  spec::Config config;
  compose(config, {url("127.0.0.1", 1)},
          {{"127.0.0.1:1", serving(EngineKind::LlamaCpp, {"a", "b"})}});
  EXPECT_EQ(names(config.pools), (Names{"a-llamacpp", "b-llamacpp"}));
}

TEST(Compose, replaces_what_was_composed_before_and_leaves_the_gateway_alone) {
  spec::Config config;
  config.gateway.threads = 3;
  const std::vector<spec::Url> addresses = {url("127.0.0.1", 1)};
  compose(config, addresses, {{"127.0.0.1:1", serving(EngineKind::Vllm, {"a"})}});
  compose(config, addresses, {{"127.0.0.1:1", serving(EngineKind::Vllm, {"b"})}});
  EXPECT_EQ(names(config.models), Names{"b"});
  compose(config, addresses, {});
  EXPECT_TRUE(config.models.empty());
  EXPECT_TRUE(config.pools.empty());
  EXPECT_EQ(config.gateway.threads, 3);
}

TEST(ResourceName, is_short_and_lower_case_without_dashes_at_its_ends) {
  EXPECT_EQ(resource_name("Qwen/Qwen2.5-7B-Instruct", {}), "qwen-qwen2-5-7b-instruct");
  EXPECT_EQ(resource_name("__a__b__", {}), "a-b");
  EXPECT_EQ(resource_name("", {}), "model");
  EXPECT_EQ(resource_name("///", {}), "model");
  EXPECT_EQ(resource_name("\xc3\xa9t\xc3\xa9", {}), "t");
  EXPECT_EQ(resource_name(std::string(200, 'x'), {}).size(), 50u);
}

TEST(ResourceName, counts_on_where_a_name_is_taken) {
  EXPECT_EQ(resource_name("a/b", {"a-b"}), "a-b-2");
  EXPECT_EQ(resource_name("a b", {"a-b", "a-b-2"}), "a-b-3");
}

RC_GTEST_PROP(ComposeLaw, any_findings_make_a_valid_configuration_in_any_order, ()) {
  const Names ids = {"a", "A", "a/b", "a b", "b", "-", "x.y", "\xff"};
  const auto kind = rc::gen::element(EngineKind::Vllm, EngineKind::LlamaCpp, EngineKind::OpenAi);
  // Which of the ids an engine serves, bit by bit.
  const auto engines = *rc::gen::container<std::vector<std::pair<EngineKind, unsigned>>>(
      rc::gen::pair(kind, rc::gen::inRange(0u, 256u)));
  std::vector<spec::Url> addresses;
  std::map<std::string, engine::Discovery> found;
  std::size_t served = 0;
  for (std::size_t i = 0; i < engines.size(); ++i) {
    addresses.push_back(url("10.0.0.1", static_cast<std::uint16_t>(i + 1)));
    Names mine;
    for (std::size_t bit = 0; bit < ids.size(); ++bit) {
      if ((engines[i].second >> bit & 1) != 0) mine.push_back(ids[bit]);
    }
    found[spec::host_port(addresses.back())] = serving(engines[i].first, mine);
    served += mine.size();
  }
  spec::Config config;
  compose(config, addresses, found);
  spec::Report report;
  spec::check(config, report);
  RC_ASSERT(report.problems().empty());
  std::size_t placed = 0;
  for (const spec::Pool& pool : config.pools) placed += pool.endpoints.size();
  RC_ASSERT(placed == served);
}

TEST(Table, aligns_words_left_and_figures_right) {
  Table table({"NAME", "LOAD", "STATE"});
  table.row({"a", "7", "up"});
  table.row({"longer", "1200.5", "down"});
  table.row({"cut", "-"});
  EXPECT_EQ(table.text(),
            "NAME    LOAD    STATE\n"
            "a            7  up\n"
            "longer  1200.5  down\n"
            "cut          -\n");
}

TEST(Table, fixed_rounds_to_its_decimals) {
  EXPECT_EQ(fixed(1.25, 0), "1");
  EXPECT_EQ(fixed(2.0 / 3, 3), "0.667");
  EXPECT_EQ(fixed(-1, 1), "-1.0");
}

TEST(Compose, an_engine_that_lists_a_model_twice_is_one_endpoint) {
  spec::Config config;
  compose(config, {url("127.0.0.1", 1)},
          {{"127.0.0.1:1", serving(EngineKind::Vllm, {"m", "n", "m"})}});
  ASSERT_EQ(config.pools.size(), 2u);
  EXPECT_EQ(config.pools[0].endpoints.size(), 1u);
  EXPECT_EQ(config.pools[1].endpoints.size(), 1u);
}

TEST(Table, is_cut_to_the_lines_and_characters_there_is_room_for) {
  EXPECT_EQ(clipped("abcd\ngr\xc3\xbc\xc3\x9f\n\nlast\n", 3, 2), "abc\ngr\xc3\xbc\n");
  EXPECT_EQ(clipped("ab", 3, 2), "ab");
  EXPECT_EQ(clipped("ab\n", 3, 0), "");
}

TEST(Table, shows_control_characters_and_sends_none) {
  EXPECT_EQ(printable("evil\x1b]0;pwned\x07\x7f"), "evil\\x1b]0;pwned\\x07\\x7f");
  EXPECT_EQ(printable("a\nb\xc2\x9b" "1m"), "a\\x0ab\\x9b1m");
  EXPECT_EQ(printable("gr\xc3\xbc\xc3\x9f \xc2\xb5"), "gr\xc3\xbc\xc3\x9f \xc2\xb5");
}

}  // namespace
}  // namespace signalbox::app
