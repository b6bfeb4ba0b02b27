// SPDX-License-Identifier: Apache-2.0
// What I/O threads know of the configuration: immutable, shared, replaced whole on a reload. A
// request keeps the one it began with.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/model/fleet.h"
#include "core/spec/config.h"
#include "io/engine/habits.h"
#include "io/http/limits.h"
#include "io/json/scan_limits.h"
#include "io/net/address.h"
#include "io/net/tls.h"

namespace signalbox::gateway {

// SHA-256 of an API key: keys are never kept or compared as text.
using KeyHash = std::array<std::uint8_t, 32>;

// How an endpoint is reached and spoken to.
struct EndpointAccess {
  model::EndpointId id;
  model::EngineKind kind = model::EngineKind::OpenAi;
  const engine::Habits* habits = nullptr;
  net::Address address;
  std::string label;                       // `127.0.0.1:8000`, with `/rank` where one is pinned
  std::string host_field;                  // value of Host
  std::string server_name;                 // for TLS
  std::shared_ptr<net::TlsContext> tls;    // null: plain
  std::string served_model;                // name in requests to it; empty: as the client wrote it
  std::string authorization;               // whole value of Authorization; empty: none
  std::string rank;                        // value of the rank header; empty: none
  bool drain_on_abort = false;             // let the answer run out when the client leaves
};

// One public model name.
struct NameAccess {
  model::RouteId route;
  std::uint64_t lora = 0;                  // hash of the adapter's name; 0: the model itself
  bool lora_name = false;                  // the name stays as it is in requests to engines
  std::vector<model::TenantId> tenants;    // who may ask for it; empty: everybody
  std::string owner;                       // for /v1/models
  std::int64_t context_tokens = 0;
  std::uint64_t body_max = 0;              // bytes of a request body
};

struct TenantAccess {
  model::TenantId id;
  std::string name;
  std::uint64_t domain = 0;                // isolation domain; 0: shared
  std::string salt;                        // cache_salt for engines; empty: none
};

struct Published {
  spec::Config config;
  std::shared_ptr<const model::Fleet> fleet;
  http::Limits http_limits;
  json::ScanLimits scan_limits;
  spec::Timeouts timeouts;
  std::size_t client_buffer = 1 << 20;
  std::size_t answer_held = 1 << 20;
  std::size_t answer_assembled = 32 << 20;
  std::uint64_t body_max = 8 << 20;        // the largest of all routes': what is read at all
  std::int64_t bodies_max = 1 << 30;       // of all requests together
  bool decision_headers = true;

  std::map<std::string, NameAccess, std::less<>> names;
  std::vector<EndpointAccess> endpoints;   // ordered by id
  std::map<KeyHash, TenantAccess> tenants; // by key

  const EndpointAccess* endpoint(model::EndpointId id) const;
  // The names that this tenant may ask for, sorted.
  std::vector<std::string> names_for(model::TenantId tenant) const;
};

// Whether `list` is open to all or has the tenant in it.
bool allowed(const std::vector<model::TenantId>& list, model::TenantId tenant);

}  // namespace signalbox::gateway
