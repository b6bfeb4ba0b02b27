// SPDX-License-Identifier: Apache-2.0
// Lists of names, with who reads them.
#include "io/gateway/client_fields.h"

#include <algorithm>
#include <array>
#include <span>

#include "io/http/head.h"

namespace signalbox::gateway {
namespace {

constexpr std::array<std::string_view, 10> kSteeringFamilies = {
    "x-signalbox-",
    "x-gateway-", "x-llm-d-", "x-slo-",  // llm-d and its endpoint picker
    "x-override-",                       // SGLang: rid, bootstrap host, rank, priority
    "x-smg-",                            // SGLang's gateway
    "x-envoy-", "l5d-",                  // meshes: another destination
    "x-original-", "x-rewrite-",         // another path
};
constexpr std::array<std::string_view, 12> kSteering = {
    "x-conversation-id",     // llama.cpp goes on after a disconnect
    "x-data-parallel-rank",  // vLLM, SGLang
    "x-vllm-priority", "priority",
    "x-prefiller-host-port", "x-encoder-hosts-ports", "x-kv-cache-source-host-port",
    "x-data-parallel-host-port", "epp-profile",  // llm-d's sidecar: where to fetch from
    "x-http-method-override", "x-method-override", "x-http-method",
};
constexpr std::array<std::string_view, 2> kIdentityFamilies = {"x-forwarded-", "x-auth-request-"};
constexpr std::array<std::string_view, 9> kIdentity = {
    "x-real-ip",        "x-client-ip",      "x-cluster-client-ip", "true-client-ip",
    "cf-connecting-ip", "fastly-client-ip", "x-remote-user",       "x-remote-addr",
    "remote-user",
};

bool in(std::string_view name, std::span<const std::string_view> names) {
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

FieldUse use_of(std::string_view name) {
  // Many servers read X_Request_Id as X-Request-Id: it would pass every list of names.
  if (name.find('_') != std::string_view::npos) return FieldUse::Withheld;
  if (in_families(name, kSteeringFamilies) || in(name, kSteering)) return FieldUse::Withheld;
  if (in_families(name, kIdentityFamilies) || in(name, kIdentity)) return FieldUse::Trusted;
  return FieldUse::Passes;
}

}  // namespace signalbox::gateway
