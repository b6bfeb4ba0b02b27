// SPDX-License-Identifier: Apache-2.0
// Turns a configuration and resolved addresses into the fleet that the core decides about. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/model/fleet.h"
#include "core/spec/config.h"
#include "core/spec/directory.h"

namespace signalbox::spec {

// `host:port` of a URL (see host_port()) -> the `ip:port` texts it stands for now. Numeric hosts
// need no entry.
using Resolved = std::map<std::string, std::vector<std::string>>;

// What the fleet does not say about an endpoint, for those who connect to it.
struct EndpointOrigin {
  model::EndpointId id;
  Url url;                // as declared: Host header, name for TLS
  std::string pool;
};

struct Compiled {
  model::Fleet fleet;
  std::vector<EndpointOrigin> origins;  // in the order of fleet.endpoints
  std::vector<std::string> notes;       // for the operator: names without address, refused ones
};

// Host names that have to be resolved, as `host:port`, each once, in order.
std::vector<std::string> unresolved(const Config& config);

// The configuration must have passed check(). An endpoint is one address (times each pinned rank);
// the same address twice in a pool is one. Addresses that no upstream may have are left out. Each
// Model without a Route of its public name gets one to itself.
Compiled compile(const Config& config, Directory& directory, const Resolved& resolved);

}  // namespace signalbox::spec
