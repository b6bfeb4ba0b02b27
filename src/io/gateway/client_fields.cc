// SPDX-License-Identifier: Apache-2.0
// Lists of names, with who reads them.
#include "io/gateway/client_fields.h"

#include <algorithm>
#include <array>
#include <span>

#include "io/http/head.h"

namespace signalbox::gateway {
namespace {

constexpr auto kSteeringFamilies = std::to_array<std::string_view>({
    "x-signalbox-",
    "x-gateway-", "x-llm-d-", "x-slo-",  // llm-d and its endpoint picker
    "x-override-",                       // SGLang: rid, bootstrap host, rank, priority
    "x-smg-",                            // SGLang's gateway
    "x-dynamo-", "x-bootstrap-",
    "x-envoy-", "l5d-",                  // meshes: another destination
    "x-original-", "x-rewrite-",         // another path
});
constexpr auto kSteering = std::to_array<std::string_view>({
    "x-conversation-id",     // llama.cpp goes on after a disconnect
    "x-data-parallel-rank",  // vLLM, SGLang
    "x-vllm-priority", "priority", "x-priority", "x-request-priority",
    "x-worker-id", "x-worker-url", "x-target-host", "x-slot-id", "x-rank", "x-decode-dp-rank",
    "x-kv-transfer-params",
    "x-prefiller-host-port", "x-encoder-hosts-ports", "x-kv-cache-source-host-port",
    "x-prefiller-url",
    "x-data-parallel-host-port", "epp-profile",  // llm-d's sidecar: where to fetch from
    "x-worker-instance-id", "x-prefill-instance-id", "x-dp-rank", "x-prefill-dp-rank",  // Dynamo
    "x-http-method-override", "x-method-override", "x-http-method",
});
constexpr auto kIdentityFamilies = std::to_array<std::string_view>({
    "x-forwarded-", "x-auth-request-", "x-authenticated-", "x-consumer-", "x-credential-",
    "x-ssl-",       "ssl-client-",     "x-amzn-oidc-",     "x-goog-",     "cf-access-",
    "tailscale-",   "x-ms-client-",     "x-amzn-mtls-",     "x-arr-",      "x-webauth-",
    "x-spiffe-",    "x-jwt-",
});
constexpr auto kIdentity = std::to_array<std::string_view>({
    "x-real-ip",        "x-client-ip",      "x-cluster-client-ip", "true-client-ip",
    "cf-connecting-ip", "fastly-client-ip", "x-remote-user",       "x-remote-addr",
    "remote-user",      "x-user",           "x-user-id",           "x-client-cert",
    "x-client-verify",  "x-tenant",         "x-tenant-id",         "client-cert",
    "client-cert-chain", "x-email",         "x-user-email",        "x-auth-user",
    "x-groups",         "x-roles",          "x-auth-token",        "x-access-token",
    "x-vault-token",    "x-user-groups",
});

bool in(std::string_view name, const auto& names) {
  return std::ranges::any_of(names, [&](std::string_view other) {
    return name.size() == other.size() && http::equals_ignoring_case(name, other);
  });
}

bool in_families(std::string_view name, std::span<const std::string_view> families) {
  return std::ranges::any_of(families, [&](std::string_view family) {
    return name.size() > family.size() &&
           http::equals_ignoring_case(name.substr(0, family.size()), family);
  });
}

}  // namespace

FieldUse use_of(std::string_view name, std::span<const std::string> listed) {
  // Many servers read X_Request_Id as X-Request-Id: it would pass every list of names.
  if (name.find('_') != std::string_view::npos) return FieldUse::Withheld;
  if (in_families(name, kSteeringFamilies) || in(name, kSteering)) return FieldUse::Withheld;
  if (!listed.empty() && !in(name, listed)) return FieldUse::Withheld;
  const bool identity = in_families(name, kIdentityFamilies) || in(name, kIdentity);
  return identity ? FieldUse::Trusted : FieldUse::Passes;
}

}  // namespace signalbox::gateway
