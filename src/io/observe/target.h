// SPDX-License-Identifier: Apache-2.0
// An address to watch, and what is found behind it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/time.h"
#include "core/model/fleet.h"
#include "core/model/ids.h"
#include "io/engine/detect.h"
#include "io/net/address.h"
#include "io/net/tls.h"

namespace signalbox::observe {

// An endpoint of the fleet at this address.
struct Member {
  model::EndpointId endpoint;
  int rank = -1;  // data-parallel rank; -1: the whole server

  bool operator==(const Member&) const = default;
};

struct Target {
  std::string name;     // in reports and logs, and the Host header: `host:port` as configured
  net::Address address;
  std::shared_ptr<net::TlsContext> tls;  // null: plain
  std::string server_name;               // checked under TLS
  std::string key;                       // bearer token for the engine; empty: none
  model::EngineKind declared = model::EngineKind::Auto;
  std::vector<Member> members;           // none: it is only found out
  Duration interval{};                   // between looks; zero: the observer's own
  Duration answer_within{};              // for one look; zero: likewise
};

struct Found {
  std::string name;             // of the target
  std::vector<Member> members;
  engine::Discovery discovery;
};

}  // namespace signalbox::observe
