// SPDX-License-Identifier: Apache-2.0
// Who asks: the key that a request shows, and the domain within which prompts may be shared.
#pragma once

#include <cstdint>
#include <string_view>

#include "io/gateway/published.h"
#include "io/http/head.h"
#include "io/json/request_scan.h"

namespace signalbox::gateway {

struct PresentedKey {
  std::string_view key;    // empty: none, or different ones
  bool differing = false;  // more than one was shown, and they are not the same
};

// The key of `Authorization: Bearer` or `x-api-key`.
PresentedKey presented_key(const http::RequestHead& head);

// A field by which clients of some service show who they are; none of an engine's business.
bool is_credential(const http::Field& field);

KeyHash hash_key(std::string_view key);

// Without tenants a client may still keep its prompts apart by `cache_salt`; 0: it does not.
std::uint64_t salt_domain(std::string_view body, const json::RequestScan& scan);

}  // namespace signalbox::gateway
