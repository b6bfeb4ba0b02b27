// SPDX-License-Identifier: Apache-2.0
// Goal: nothing by which a client steers an engine goes on, and all else does. Method: names.
#include "io/gateway/client_fields.h"

#include <gtest/gtest.h>

namespace signalbox::gateway {
namespace {

TEST(ClientFields, WhatSteersStaysHere) {
  for (const auto* name :
       {"X-Override-Bootstrap-Host", "x-override-rid", "x-smg-routing-key", "X-SignalBox-Endpoint",
        "x-llm-d-model-name-rewrite", "x-gateway-destination-endpoint", "x-slo-ttft-ms",
        "x-envoy-original-dst-host", "l5d-dst-override", "x-original-url", "x-rewrite-url",
        "X-HTTP-Method", "Priority", "X-Data-Parallel-Rank", "EPP-Profile", "X_Request_Id",
        "x-prefiller-url",
        "x-bootstrap-room", "x-worker-url", "x-slot-id", "x-worker-instance-id", "x-dp-rank",
        "x-dynamo-routing-mode", "a_b"}) {
    EXPECT_EQ(use_of(name, {}), FieldUse::Withheld) << name;
  }
}

TEST(ClientFields, WhoAsksIsForListedPeersToSay) {
  for (const auto* name : {"X-Real-IP", "x-forwarded-user", "X-Forwarded-Client-Cert",
                           "remote-user", "CF-Connecting-IP", "x-auth-request-email", "x-user-id",
                           "x-consumer-username", "X-Goog-IAP-JWT-Assertion", "Client-Cert",
                           "X-Email", "X-Auth-Token", "X-Amzn-Mtls-Clientcert"}) {
    EXPECT_EQ(use_of(name, {}), FieldUse::Trusted) << name;
  }
}

TEST(ClientFields, EverythingElsePasses) {
  for (const auto* name : {"x-team", "traceparent", "x-stainless-lang", "openai-organization", "x-",
                           "x-forwarded", "priorities", "x-override", "anthropic-version", "x-slow",
                           "baggage", "x-session-id"}) {
    EXPECT_EQ(use_of(name, {}), FieldUse::Passes) << name;
  }
}

TEST(ClientFields, WhereNamesAreListedNothingElsePasses) {
  const std::string listed[] = {"X-Team", "priority", "x-user-id", "a_b"};
  EXPECT_EQ(use_of("x-team", listed), FieldUse::Passes);
  EXPECT_EQ(use_of("x-other", listed), FieldUse::Withheld);
  EXPECT_EQ(use_of("x-acme-identity", listed), FieldUse::Withheld);
  EXPECT_EQ(use_of("x-real-ip", listed), FieldUse::Withheld);
  EXPECT_EQ(use_of("x-user-id", listed), FieldUse::Trusted) << "from listed peers alone";
  EXPECT_EQ(use_of("priority", listed), FieldUse::Withheld) << "for nobody";
  EXPECT_EQ(use_of("a_b", listed), FieldUse::Withheld);
}

}  // namespace
}  // namespace signalbox::gateway
