// SPDX-License-Identifier: Apache-2.0
// Goal: who asks is read from either header and never guessed; names, limits and pages follow from
// what was published. Method: real request heads, and published configurations made by hand.
#include "io/gateway/identify.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>

#include "io/gateway/answers.h"
#include "io/gateway/cors.h"
#include "io/gateway/models_page.h"
#include "io/gateway/published.h"
#include "io/gateway/shared.h"
#include "io/http/head_parser.h"

namespace signalbox::gateway {
namespace {

using Json = nlohmann::json;

// A parsed request head with these lines; keeps the bytes that it points to.
struct Head {
  explicit Head(const std::string& lines, const std::string& first = "GET / HTTP/1.1")
      : text(first + "\r\nhost: h\r\n" + lines + "\r\n"), parser(http::Limits{}) {
    EXPECT_EQ(parser.parse(text), http::Progress::Complete) << text;
  }
  const http::RequestHead& operator*() const { return parser.head(); }
  std::string text;
  http::RequestParser parser;
};

std::string key_of(const std::string& lines) {
  const Head head(lines);
  const PresentedKey shown = presented_key(*head);
  return shown.differing ? "differing" + std::string(shown.key) : std::string(shown.key);
}

TEST(PresentedKey, comes_from_either_header) {
  EXPECT_EQ(key_of("authorization: Bearer sk-1\r\n"), "sk-1");
  EXPECT_EQ(key_of("x-api-key: sk-1\r\n"), "sk-1");
  EXPECT_EQ(key_of("X-Api-Key: sk-1\r\nAuthorization: Bearer sk-1\r\n"), "sk-1");
  EXPECT_EQ(key_of(""), "");
}

TEST(PresentedKey, the_scheme_has_no_case_and_blanks_do_not_count) {
  for (const char* const scheme : {"bearer", "BEARER", "BeArEr"}) {
    EXPECT_EQ(key_of("authorization: " + std::string(scheme) + "   sk-1  \r\n"), "sk-1");
  }
}

TEST(PresentedKey, two_different_keys_are_none) {
  EXPECT_EQ(key_of("authorization: Bearer sk-1\r\nx-api-key: sk-2\r\n"), "differing");
}

TEST(PresentedKey, other_schemes_and_empty_values_are_none) {
  EXPECT_EQ(key_of("authorization: Basic c2stMQ==\r\n"), "");
  EXPECT_EQ(key_of("authorization: Bearer\r\n"), "");
  EXPECT_EQ(key_of("authorization: Bearer \r\n"), "");
  EXPECT_EQ(key_of("authorization: Bearersk-1\r\n"), "");
  EXPECT_EQ(key_of("authorization: sk-1\r\n"), "");
  EXPECT_EQ(key_of("authorization: Basic c2s=\r\nx-api-key: sk-1\r\n"), "sk-1");
}

std::string client_of(const std::string& lines, const std::string& peer = "10.0.0.1") {
  const Head head(lines);
  return client_address(*head, peer,
                        {*spec::parse_cidr("10.0.0.0/8"), *spec::parse_cidr("fd00::/8")});
}

TEST(ClientAddress, is_the_peers_unless_it_is_trusted) {
  EXPECT_EQ(client_of("x-forwarded-for: 203.0.113.9\r\n", "192.0.2.1"), "192.0.2.1");
  EXPECT_EQ(client_of(""), "10.0.0.1");
  const Head head("x-forwarded-for: 203.0.113.9\r\n");
  EXPECT_EQ(client_address(*head, "10.0.0.1", {}), "10.0.0.1");
}

TEST(ClientAddress, is_the_last_that_a_trusted_hop_vouches_for) {
  EXPECT_EQ(client_of("x-forwarded-for: 203.0.113.9\r\n"), "203.0.113.9");
  EXPECT_EQ(client_of("x-forwarded-for: 198.51.100.1, 203.0.113.9\r\n"), "203.0.113.9");
  EXPECT_EQ(client_of("x-forwarded-for: 198.51.100.1, 203.0.113.9 ,10.1.2.3\r\n"), "203.0.113.9");
  EXPECT_EQ(client_of("x-forwarded-for: 203.0.113.9, 10.1.2.3\r\nX-Forwarded-For: 10.7.7.7\r\n"),
            "203.0.113.9");
  EXPECT_EQ(client_of("x-forwarded-for: 10.9.9.9, 10.1.2.3\r\n"), "10.9.9.9");  // all inside
}

TEST(ClientAddress, takes_ports_and_both_families) {
  EXPECT_EQ(client_of("x-forwarded-for: 203.0.113.9:4711\r\n"), "203.0.113.9");
  EXPECT_EQ(client_of("x-forwarded-for: [2001:db8::7]:4711, fd00::1\r\n"), "2001:db8::7");
  EXPECT_EQ(client_of("x-forwarded-for: 2001:DB8:0::7\r\n", "fd00::2"), "2001:db8::7");
}

TEST(ClientAddress, what_is_no_address_ends_the_search) {
  EXPECT_EQ(client_of("x-forwarded-for: 203.0.113.9, unknown, 10.1.2.3\r\n"), "10.1.2.3");
  EXPECT_EQ(client_of("x-forwarded-for: 203.0.113.9, [::1\r\n"), "10.0.0.1");
  EXPECT_EQ(client_of("x-forwarded-for: \"<script>\"\r\n"), "10.0.0.1");
  EXPECT_EQ(client_of("x-forwarded-for: , ,203.0.113.9,,\r\n"), "203.0.113.9");
}

TEST(HashKey, is_sha_256) {
  const KeyHash hash = hash_key("abc");
  EXPECT_EQ(hash[0], 0xba);
  EXPECT_EQ(hash[1], 0x78);
  EXPECT_EQ(hash[31], 0xad);
  EXPECT_NE(hash_key("abc"), hash_key("abd"));
}

TEST(SaltDomain, tells_salts_apart_and_has_none_without) {
  const auto domain = [](const std::string& body) {
    json::RequestScan scan;
    EXPECT_TRUE(json::scan(body, model::Api::ChatCompletions, {}, scan).has_value()) << body;
    return salt_domain(body, scan);
  };
  const std::string messages = R"("model":"m","messages":[{"role":"user","content":"a"}])";
  const auto salted = [&](const std::string& salt) {
    return domain("{" + messages + R"(,"cache_salt":")" + salt + "\"}");
  };
  EXPECT_EQ(domain("{" + messages + "}"), 0u);
  EXPECT_NE(salted("a"), 0u);
  EXPECT_EQ(salted("a"), salted("a"));
  EXPECT_NE(salted("a"), salted("b"));
}

TEST(Published, finds_endpoints_by_id) {
  Published published;
  for (const std::uint32_t id : {2u, 3u, 7u}) {
    EndpointAccess endpoint;
    endpoint.id = model::EndpointId{id};
    endpoint.label = std::to_string(id);
    published.endpoints.push_back(endpoint);
  }
  ASSERT_NE(published.endpoint(model::EndpointId{3}), nullptr);
  EXPECT_EQ(published.endpoint(model::EndpointId{3})->label, "3");
  EXPECT_EQ(published.endpoint(model::EndpointId{7})->label, "7");
  for (const std::uint32_t id : {0u, 1u, 4u, 8u}) {
    EXPECT_EQ(published.endpoint(model::EndpointId{id}), nullptr) << id;
  }
  EXPECT_EQ(Published{}.endpoint(model::EndpointId{1}), nullptr);
}

// Two names, the second for tenant 2 alone.
Published two_names() {
  Published published;
  NameAccess open;
  open.owner = "acme";
  published.names["open \"model\""] = open;
  NameAccess closed;
  closed.tenants = {model::TenantId{2}};
  closed.context_tokens = 4096;
  published.names["closed"] = closed;
  return published;
}

TEST(Published, shows_a_tenant_the_names_that_it_may_ask_for) {
  const std::vector<model::TenantId> two = {model::TenantId{2}, model::TenantId{5}};
  EXPECT_TRUE(allowed({}, model::TenantId{1}));
  EXPECT_TRUE(allowed({}, model::TenantId{}));
  EXPECT_TRUE(allowed(two, model::TenantId{5}));
  EXPECT_FALSE(allowed(two, model::TenantId{1}));
  EXPECT_FALSE(allowed(two, model::TenantId{}));
  const Published published = two_names();
  EXPECT_EQ(published.names_for(model::TenantId{1}), std::vector<std::string>{"open \"model\""});
  EXPECT_EQ(published.names_for(model::TenantId{2}),
            (std::vector<std::string>{"closed", "open \"model\""}));
}

TEST(ModelsPage, is_json_that_both_kinds_of_clients_read) {
  const Published published = two_names();
  const Json page = Json::parse(models_page(published, model::TenantId{2}));
  EXPECT_EQ(page["object"], "list");
  EXPECT_EQ(page["has_more"], false);
  ASSERT_EQ(page["data"].size(), 2u);
  const Json& closed = page["data"][0];
  EXPECT_EQ(closed["id"], "closed");
  EXPECT_EQ(closed["object"], "model");
  EXPECT_EQ(closed["type"], "model");
  EXPECT_EQ(closed["max_model_len"], 4096);
  EXPECT_TRUE(closed["created"].is_number_integer());
  const Json& open = page["data"][1];
  EXPECT_EQ(open["id"], "open \"model\"");
  EXPECT_EQ(open["display_name"], "open \"model\"");
  EXPECT_EQ(open["owned_by"], "acme");
  EXPECT_FALSE(open.contains("max_model_len"));
  EXPECT_EQ(Json::parse(models_page(published, model::TenantId{1}))["data"].size(), 1u);
  EXPECT_EQ(Json::parse(models_page(Published{}, model::TenantId{}))["data"], Json::array());
  EXPECT_EQ(Json::parse(model_entry("closed", published.names.at("closed"))), closed);
}

using Ids = std::vector<model::RequestId>;

TEST(RequestNames, ours_say_which_request_they_mean_without_being_remembered) {
  const RequestNames names(0xdeadbeef);
  for (const std::uint64_t id : {0ull, 1ull, 0x0123456789abcdefull, ~0ull}) {
    const std::string name = names.name(model::RequestId{id});
    EXPECT_EQ(name.size(), 29u);
    EXPECT_TRUE(name.starts_with("req-deadbeef-")) << name;
    EXPECT_TRUE(names.is_ours(name));
    EXPECT_EQ(names.find(name), Ids{model::RequestId{id}}) << name;
  }
}

TEST(RequestNames, a_clients_own_means_all_requests_that_it_gave_it_to) {
  RequestNames names(1);
  EXPECT_EQ(names.find("mine"), Ids{});
  names.remember("mine", model::RequestId{5});
  EXPECT_EQ(names.find("mine"), Ids{model::RequestId{5}});
  names.remember("mine", model::RequestId{6});
  EXPECT_EQ(names.find("mine"), (Ids{model::RequestId{5}, model::RequestId{6}}));
  EXPECT_EQ(names.known_as(model::RequestId{5}), "mine");
  EXPECT_EQ(names.find("req-"), Ids{});
  EXPECT_EQ(names.find("req-00000001-000000000000000g"), Ids{});
}

TEST(RequestNames, a_name_of_another_process_is_not_taken_for_ours) {
  const RequestNames here(1);
  const RequestNames there(2);
  EXPECT_FALSE(here.is_ours(there.name(model::RequestId{9})));
  EXPECT_EQ(here.find(there.name(model::RequestId{9})), Ids{});
}

TEST(RequestNames, only_the_latest_are_remembered) {
  RequestNames names(1);
  for (std::uint64_t i = 0; i < 30'000; ++i) {
    names.remember(i % 2 == 0 ? "same" : "client-" + std::to_string(i), model::RequestId{i});
  }
  EXPECT_EQ(names.find("client-1"), Ids{});
  EXPECT_EQ(names.find("client-19999"), Ids{});
  EXPECT_EQ(names.find("client-20001"), Ids{model::RequestId{20001}});
  EXPECT_EQ(names.find("client-29999"), Ids{model::RequestId{29999}});
  const Ids same = names.find("same");
  EXPECT_EQ(same.size(), 5000u);
  EXPECT_EQ(same.front(), model::RequestId{20000});
}

TEST(OwnAnswer, has_a_status_a_code_and_a_sentence_for_every_outcome) {
  for (const model::Outcome outcome : model::kOutcomes) {
    const OwnAnswer answer = own_answer(outcome);
    EXPECT_EQ(answer.status, model::http_status(outcome));
    EXPECT_FALSE(answer.code.empty());
    EXPECT_TRUE(answer.message.ends_with('.')) << answer.message;
  }
  EXPECT_EQ(own_answer(model::Outcome::QueueFull).status, 503);
  EXPECT_EQ(own_answer(model::Outcome::TenantLimit).status, 429);
}

TEST(UnknownModel, names_a_dozen_and_bounds_what_was_asked) {
  EXPECT_EQ(unknown_model("x", {}), "The model 'x' does not exist. No model is available.");
  EXPECT_EQ(unknown_model("x", {"a", "b"}), "The model 'x' does not exist. Available: a, b.");
  const std::vector<std::string> many(100, "m");
  EXPECT_TRUE(unknown_model("x", many).ends_with(", and more in /v1/models."));
  EXPECT_LT(unknown_model(std::string(1 << 20, 'x'), many).size(), 400u);
}

RC_GTEST_PROP(ErrorEventLaw, is_one_event_of_valid_json_whatever_the_message_says,
              (const std::string& message)) {
  using model::Api;
  for (const Api api : {Api::ChatCompletions, Api::Completions, Api::Messages, Api::Responses}) {
    const std::string event = error_event(api, {503, "draining", message});
    RC_ASSERT(event.ends_with("\n\n"));
    RC_ASSERT(event.find("\n\n") == event.size() - 2);
    const auto data = event.find("data: ");
    const std::string text = event.substr(data + 6, event.size() - data - 8);
    const Json body = Json::parse(text);
    if (api == Api::Messages) {
      RC_ASSERT(event.starts_with("event: error\n"));
      RC_ASSERT(body["type"] == "error");
      RC_ASSERT(body["error"]["message"].is_string());
    } else if (api == Api::Responses) {
      RC_ASSERT(event.starts_with("event: error\n"));
      RC_ASSERT(body["type"] == "error");
      RC_ASSERT(body["message"].is_string());
    } else {
      RC_ASSERT(data == 0u);
      RC_ASSERT(body["error"]["message"].is_string());
      RC_ASSERT(body["error"]["code"] == "draining");
    }
  }
}

Published with_origins(const std::vector<std::string>& origins) {
  Published published;
  for (const std::string& origin : origins) {
    published.config.gateway.cors.origins.push_back({origin});
  }
  return published;
}

TEST(Cors, lets_only_named_origins_in) {
  const Published published = with_origins({"https://a.example", "http://localhost:3000"});
  const auto fields = [&](const std::string& lines) {
    std::string out;
    append_cors(out, published, *Head(lines));
    return out;
  };
  EXPECT_NE(fields("origin: https://a.example\r\n").find(
                "access-control-allow-origin: https://a.example\r\n"),
            std::string::npos);
  EXPECT_NE(fields("origin: https://a.example\r\n").find("vary: Origin\r\n"), std::string::npos);
  EXPECT_EQ(fields("origin: https://a.example.evil.test\r\n"), "");
  EXPECT_EQ(fields("origin: http://a.example\r\n"), "");
  EXPECT_EQ(fields("origin: null\r\n"), "");
  EXPECT_EQ(fields(""), "");
  std::string out;
  append_cors(out, Published{}, *Head("origin: https://a.example\r\n"));
  EXPECT_EQ(out, "");
  append_cors(out, with_origins({"*"}), *Head("origin: https://any.example\r\n"));
  EXPECT_NE(out.find("access-control-allow-origin: https://any.example\r\n"), std::string::npos);
}

TEST(Cors, answers_a_preflight_whole) {
  const Published published = with_origins({"https://a.example"});
  const std::string options = "OPTIONS /v1/chat/completions HTTP/1.1";
  std::string out;
  append_preflight(out, published,
                   *Head("origin: https://a.example\r\naccess-control-request-method: POST\r\n"
                         "access-control-request-headers: authorization, content-type\r\n",
                         options),
                   "req-1");
  http::ResponseParser parser(http::Limits{});
  ASSERT_EQ(parser.parse(out), http::Progress::Complete);
  EXPECT_EQ(parser.head().status, 204);
  EXPECT_EQ(parser.head_length(), out.size());
  EXPECT_EQ(parser.head().framing.kind, http::Framing::Kind::None);
  EXPECT_NE(out.find("access-control-allow-headers: authorization, content-type\r\n"),
            std::string::npos);
  EXPECT_NE(out.find("x-request-id: req-1\r\n"), std::string::npos);
  std::string refused;
  append_preflight(refused, published, *Head("origin: https://b.example\r\n", options), "");
  EXPECT_NE(refused.find("HTTP/1.1 204"), std::string::npos);
  EXPECT_EQ(refused.find("access-control"), std::string::npos);
}

}  // namespace
}  // namespace signalbox::gateway
