// SPDX-License-Identifier: Apache-2.0
// The admin API: metrics, health, fleet, decisions with their explanations, configuration,
// profiles, accounts. Reads the core by short looks under its lock. Control loop's thread.
#pragma once

#include <string>

#include "app/controller.h"
#include "io/gateway/admin_server.h"
#include "io/gateway/shared.h"
#include "io/host/core_host.h"
#include "io/telemetry/registry.h"

namespace signalbox::app {

class AdminApi {
 public:
  AdminApi(host::CoreHost& host, const Controller& controller, gateway::Shared& shared,
           telemetry::Registry& registry);

  gateway::AdminAnswer handle(const gateway::AdminRequest& request) const;

 private:
  std::string fleet() const;
  std::string decisions(std::size_t count) const;
  gateway::AdminAnswer decision(std::string_view request_name) const;
  std::string profiles() const;
  void collect(telemetry::TextWriter& writer) const;

  host::CoreHost& host_;
  const Controller& controller_;
  gateway::Shared& shared_;
  telemetry::Registry& registry_;
};

}  // namespace signalbox::app
