// SPDX-License-Identifier: Apache-2.0
// Who asks: the key that a request shows, and the domain within which prompts may be shared.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/spec/address.h"
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

// Whether the numeric address is in one of the networks.
bool in_any(const std::vector<spec::Cidr>& networks, std::string_view address);

// Who asks, by address: the peer, or, where it is in a trusted network, whom it says it asks for.
// That is the last of X-Forwarded-For that is not in a trusted network itself: what stands before
// it was written by somebody whom nobody vouches for.
std::string client_address(const http::RequestHead& head, const std::string& peer,
                           const std::vector<spec::Cidr>& trusted);

// A field by which clients of some service show who they are; none of an engine's business.
bool is_credential(const http::Field& field);

KeyHash hash_key(std::string_view key);

// Without tenants a client may still keep its prompts apart by `cache_salt`; 0: it does not.
std::uint64_t salt_domain(std::string_view body, const json::RequestScan& scan);

}  // namespace signalbox::gateway
