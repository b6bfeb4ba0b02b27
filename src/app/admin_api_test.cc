// SPDX-License-Identifier: Apache-2.0
// Goal: every page of the admin API is well formed and says what the core knows; wrong paths,
// methods and names are refused and break nothing. Method: a controller with two pools whose loop
// never runs, so that no engine is looked at; requests handed to the core by hand.
#include "app/admin_api.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/flow/flow.h"

namespace signalbox::app {
namespace {

using gateway::AdminAnswer;
using nlohmann::json;

constexpr const char* kConfiguration = R"(apiVersion: signalbox.dev/v1alpha1
kind: Model
metadata: {name: big}
spec: {context_tokens: 8192, loras: [french]}
---
apiVersion: signalbox.dev/v1alpha1
kind: Pool
metadata: {name: fast}
spec:
  model: big
  engine: openai
  accelerator: H100
  endpoints: [http://127.0.0.1:7001, http://127.0.0.1:7002]
---
apiVersion: signalbox.dev/v1alpha1
kind: Pool
metadata: {name: slow}
spec: {model: big, engine: llamacpp, endpoints: [http://127.0.0.1:7003]}
)";

class AdminApiTest : public ::testing::Test {
 protected:
  AdminApiTest() {
    host_.add_owner(*loop_, [this](const model::Action& action) {
      if (const auto* dispatch = std::get_if<model::Dispatch>(&action)) sent_.push_back(*dispatch);
    });
    auto loaded = config::load_text("test.yaml", kConfiguration);
    EXPECT_TRUE(loaded.has_value()) << loaded.error().message;
    controller_.use(std::move(*loaded));
  }
  AdminAnswer get(std::string_view path, std::string_view query = "") const {
    return api_.handle({http::Method::Get, path, query, ""});
  }
  json page(std::string_view path, std::string_view query = "") const {
    const AdminAnswer answer = get(path, query);
    EXPECT_EQ(answer.status, 200) << path;
    EXPECT_EQ(answer.type, "application/json") << path;
    return json::parse(answer.body);
  }
  // A request that is placed and answered; returns its name.
  std::string served(std::uint64_t id) {
    model::RequestArrived arrived;
    arrived.request = model::RequestId{id};
    arrived.route = controller_.published()->names.at("big").route;
    arrived.prompt.bytes = 400;
    std::vector<model::Event> batch{arrived};
    host_.hand_in(0, batch);
    EXPECT_EQ(sent_.size(), 1u);
    model::AttemptEnded end;
    end.request = sent_[0].request;
    end.attempt = sent_[0].attempt;
    end.status = 200;
    end.usage = {100, 10, 20};
    batch = {model::FirstToken{end.request, end.attempt}, end};
    host_.hand_in(0, batch);
    sent_.clear();
    return shared_.names.name(model::RequestId{id});
  }

  std::unique_ptr<net::Loop> loop_ = *net::Loop::create();
  telemetry::Registry registry_;
  gateway::Metrics metrics_{registry_};
  host::CoreHost host_{std::make_unique<flow::Flow>(flow::Config{}, 3), nullptr};
  gateway::Shared shared_{host_, metrics_, 0xabcd};
  Controller controller_{*loop_, host_, [](auto) {}, 3};
  AdminApi api_{host_, controller_, shared_, registry_};
  std::vector<model::Dispatch> sent_;
};

TEST_F(AdminApiTest, tells_life_from_readiness) {
  EXPECT_EQ(get("/livez").status, 200);
  EXPECT_EQ(get("/readyz").status, 200);  // there are declared engines to try
  shared_.draining = true;
  EXPECT_EQ(get("/livez").status, 200);
  EXPECT_EQ(get("/readyz").status, 503);
  EXPECT_EQ(json::parse(get("/readyz").body)["status"], "draining");
}

TEST_F(AdminApiTest, shows_the_fleet_with_names) {
  served(1);
  const json fleet = page("/v1/fleet");
  EXPECT_EQ(fleet["totals"]["arrived"], 1);
  EXPECT_EQ(fleet["totals"]["outcomes"]["completed"], 1);
  EXPECT_EQ(fleet["totals"]["illegal_events"], 0);
  ASSERT_EQ(fleet["models"].size(), 2u);  // and its adapter
  ASSERT_EQ(fleet["pools"].size(), 2u);
  EXPECT_EQ(fleet["pools"][0]["name"], "fast");
  EXPECT_EQ(fleet["pools"][0]["model"], "big");
  EXPECT_EQ(fleet["pools"][0]["accelerator"], "H100");
  ASSERT_EQ(fleet["pools"][0]["endpoints"].size(), 2u);
  EXPECT_EQ(fleet["pools"][0]["endpoints"][0]["address"], "127.0.0.1:7001");
  EXPECT_EQ(fleet["pools"][0]["endpoints"][0]["observed"], false);
  EXPECT_EQ(fleet["pools"][1]["endpoints"][0]["kind"], "llamacpp");
}

TEST_F(AdminApiTest, explains_a_decision_by_the_name_of_its_request) {
  const std::string name = served(42);
  const json explained = page("/v1/decisions/" + name);
  EXPECT_EQ(explained["request"], name);
  ASSERT_EQ(explained["decisions"].size(), 1u);
  shared_.names.remember("client/id 7", model::RequestId{42});
  EXPECT_EQ(page("/v1/decisions/client%2Fid%207")["request"], "client/id 7");
  EXPECT_EQ(page("/v1/decisions")["decisions"][0]["request"], "client/id 7");
}

TEST_F(AdminApiTest, lists_the_latest_decisions) {
  for (std::uint64_t id = 1; id <= 5; ++id) served(id);
  EXPECT_EQ(page("/v1/decisions")["decisions"].size(), 5u);
  EXPECT_EQ(page("/v1/decisions", "limit=2")["decisions"].size(), 2u);
  EXPECT_EQ(page("/v1/decisions", "limit=0")["decisions"].size(), 0u);
  EXPECT_EQ(page("/v1/decisions", "a=b&limit=3")["decisions"].size(), 3u);
  EXPECT_EQ(page("/v1/decisions", "nolimit=3")["decisions"].size(), 5u);
  EXPECT_EQ(page("/v1/decisions", "limit=99999999999999999999")["decisions"].size(), 5u);
}

TEST_F(AdminApiTest, says_so_when_a_limit_is_no_number) {
  for (const char* const query : {"limit=abc", "limit=-1", "limit=", "a=b&limit=1x"}) {
    EXPECT_EQ(get("/v1/decisions", query).status, 400) << query;
  }
}

TEST_F(AdminApiTest, refuses_names_that_it_does_not_know_and_breaks_on_none) {
  served(1);
  for (const char* const name : {"", "x", "%", "%zz", "%ff%fe", "req-0000abcd-00000000000000ff",
                                 "req-%ff%ff%ff%ff%ff%ff%ff%ff-0000000000000001",
                                 "req-00000000-0000000000000001"}) {
    EXPECT_EQ(get("/v1/decisions/" + std::string(name)).status, 404) << name;
  }
}

TEST_F(AdminApiTest, accounts_add_up) {
  for (std::uint64_t id = 1; id <= 3; ++id) served(id);
  const json accounts = page("/v1/accounts");
  EXPECT_EQ(accounts["arrived"], 3);
  EXPECT_EQ(accounts["all"]["requests"], 3);
  EXPECT_EQ(accounts["all"]["completion_tokens"], 60);
  EXPECT_EQ(accounts["models"]["big"]["prompt_tokens"], 300);
  for (const char* const key : {"pools", "endpoints"}) {
    std::int64_t sum = 0;
    for (const auto& [name, totals] : accounts[key].items()) {
      sum += totals["completion_tokens"].get<std::int64_t>();
    }
    EXPECT_EQ(sum, 60) << key;
  }
}

TEST_F(AdminApiTest, shows_what_is_believed_of_each_pool) {
  const json profiles = page("/v1/profiles");
  ASSERT_EQ(profiles["profiles"].size(), 2u);
  EXPECT_EQ(profiles["profiles"][0]["pool"], "fast");
  EXPECT_GT(profiles["profiles"][0]["coefficients"]["d"].get<double>(), 0.0);
}

TEST_F(AdminApiTest, writes_the_configuration_so_that_it_can_be_read_again) {
  const AdminAnswer answer = get("/v1/config");
  EXPECT_EQ(answer.type, "application/yaml");
  const auto again = config::load_text("again.yaml", answer.body);
  ASSERT_TRUE(again.has_value()) << again.error().message;
  EXPECT_EQ(spec::diff(again->config, controller_.loaded().config), std::vector<std::string>{});
}

TEST_F(AdminApiTest, metrics_name_pools_and_endpoints) {
  served(1);
  const AdminAnswer answer = get("/metrics");
  EXPECT_EQ(answer.status, 200);
  EXPECT_TRUE(answer.type.starts_with("text/plain; version=0.0.4"));
  EXPECT_NE(answer.body.find("# TYPE signalbox_decisions_total counter\n"), std::string::npos);
  EXPECT_NE(answer.body.find("signalbox_decisions_total 1\n"), std::string::npos);
  EXPECT_NE(answer.body.find("endpoint=\"127.0.0.1:7003\""), std::string::npos);
  EXPECT_TRUE(answer.body.ends_with('\n'));
}

TEST_F(AdminApiTest, serves_nothing_else_and_no_other_method) {
  EXPECT_EQ(get("/").status, 404);
  EXPECT_EQ(get("/v1/fleet/").status, 404);
  EXPECT_EQ(get("/V1/FLEET").status, 404);
  EXPECT_TRUE(json::accept(get("/nothing").body));
  EXPECT_EQ(api_.handle({http::Method::Post, "/v1/fleet", "", "{}"}).status, 405);
  EXPECT_EQ(api_.handle({http::Method::Head, "/v1/fleet", "", ""}).status, 200);
}

TEST_F(AdminApiTest, a_reload_takes_pools_away_whole) {
  auto next = config::load_text("next.yaml", R"(apiVersion: signalbox.dev/v1alpha1
kind: Model
metadata: {name: small}
---
apiVersion: signalbox.dev/v1alpha1
kind: Pool
metadata: {name: only}
spec: {model: small, engine: vllm, endpoints: [http://127.0.0.1:7009]}
)");
  ASSERT_TRUE(next.has_value()) << next.error().message;
  served(1);
  const auto before = controller_.published();
  controller_.reload(std::move(*next));
  EXPECT_EQ(page("/v1/fleet")["pools"].size(), 1u);
  EXPECT_FALSE(controller_.published()->names.contains("big"));
  EXPECT_TRUE(before->names.contains("big"));  // requests keep what they began with
  EXPECT_EQ(page("/v1/accounts")["all"]["requests"], 1);
}

// Whether tenants, models, pools and endpoints all add up to what was spent.
void expect_sums(const json& accounts) {
  for (const char* const key : {"tenants", "models", "pools", "endpoints"}) {
    std::int64_t tokens = 0;
    std::int64_t attempts = 0;
    double busy = 0;
    for (const auto& [name, totals] : accounts[key].items()) {
      tokens += totals["completion_tokens"].get<std::int64_t>();
      attempts += totals["attempts"].get<std::int64_t>();
      busy += totals["busy_seconds"].get<double>();
    }
    EXPECT_EQ(tokens, accounts["all"]["completion_tokens"]) << key;
    EXPECT_EQ(attempts, accounts["all"]["attempts"]) << key;
    EXPECT_NEAR(busy, accounts["all"]["busy_seconds"].get<double>(), 1e-9) << key;
  }
}

TEST_F(AdminApiTest, accounts_keep_what_removed_endpoints_and_pools_have_spent) {
  for (std::uint64_t id = 1; id <= 6; ++id) served(id);
  expect_sums(page("/v1/accounts"));
  for (const char* const endpoints : {"[http://127.0.0.1:7002]", "[http://127.0.0.1:7008]"}) {
    auto next = config::load_text("next.yaml", std::string(R"(apiVersion: signalbox.dev/v1alpha1
kind: Model
metadata: {name: big}
---
apiVersion: signalbox.dev/v1alpha1
kind: Pool
metadata: {name: fast}
spec: {model: big, engine: openai, accelerator: H100, endpoints: )") + endpoints + "}\n");
    ASSERT_TRUE(next.has_value()) << next.error().message;
    controller_.reload(std::move(*next));
    const json accounts = page("/v1/accounts");
    EXPECT_EQ(accounts["all"]["completion_tokens"], 120);
    expect_sums(accounts);
  }
  // All that was spent there was spent on endpoints that are gone.
  const json gone = page("/v1/accounts");
  EXPECT_EQ(gone["endpoints"]["(removed from fast)"]["attempts"],
            gone["pools"]["fast"]["attempts"]);
  EXPECT_EQ(gone["endpoints"]["127.0.0.1:7008"]["attempts"], 0);
}

}  // namespace
}  // namespace signalbox::app
