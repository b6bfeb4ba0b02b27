// SPDX-License-Identifier: Apache-2.0
// The control side of `serve`: configuration, names to addresses, what engines turn out to be; it
// makes the fleet of them and hands it to the core and the workers. Control loop's thread.
// Keeps: a configuration is applied whole or not at all; the last good one stays.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "app/resolver.h"
#include "app/tls_contexts.h"
#include "core/spec/compile.h"
#include "core/spec/directory.h"
#include "io/config/load.h"
#include "io/engine/detect.h"
#include "io/gateway/published.h"
#include "io/host/core_host.h"
#include "io/net/loop.h"
#include "io/observe/observer.h"

namespace signalbox::app {

// Told when there is something new to serve.
using Publisher = std::function<void(std::shared_ptr<const gateway::Published>)>;

class Controller {
 public:
  Controller(net::Loop& loop, host::CoreHost& host, Publisher publisher, std::uint64_t seed,
             Resolver::Lookup lookup = net::resolve);
  ~Controller();

  // Serves what the configuration declares. `tls` was made for it.
  void use(config::Loaded loaded, TlsContexts tls = {});
  // Serves whatever is found at these addresses: pools and models are made of what engines say.
  void use_addresses(config::Loaded base, TlsContexts tls, std::vector<spec::Url> urls);

  // Serves `next` instead of the present configuration and logs what differs.
  void reload(config::Loaded next, TlsContexts tls = {});

  const config::Loaded& loaded() const { return loaded_; }
  const TlsContexts& tls() const { return tls_; }
  std::shared_ptr<const gateway::Published> published() const { return published_; }

  // Whether there is an endpoint to send requests to: declared, or found at an address.
  bool ready() const;
  // What was found at each target, by name.
  const std::map<std::string, engine::Discovery>& found() const { return found_; }

 private:
  // Compiles, publishes, and watches. Names are resolved first, in the background.
  void rebuild();
  void resolve_names();
  void on_resolved(spec::Resolved resolved);
  void compose_from_found();
  void publish();
  void watch();
  gateway::EndpointAccess access(const model::Endpoint& endpoint,
                                 const spec::EndpointOrigin& origin);
  void take_lists();
  void add_names(gateway::Published& published) const;
  void add_tenants(gateway::Published& published) const;
  void on_found(const observe::Found& found);
  std::shared_ptr<net::TlsContext> tls_for(const spec::Pool& pool) const;
  void tell_notes();

  net::Loop& loop_;
  host::CoreHost& host_;
  Publisher publisher_;
  observe::Observer observer_;
  config::Loaded loaded_;
  std::vector<spec::Url> addresses_;  // zero configuration: watched as they are
  spec::Directory directory_;
  spec::Resolved resolved_;
  std::set<std::string> lost_names_;  // of them, those that the latest look-up did not find
  spec::Compiled compiled_;
  std::map<std::string, engine::Discovery> found_;  // by `host:port`
  TlsContexts tls_;
  std::shared_ptr<const gateway::Published> published_;
  std::vector<model::Event> batch_;
  std::set<std::string> told_;      // notes in force that the log has
  bool looked_up_ = true;           // false: what has no address yet may have one in a moment
  std::vector<std::string> asked_;  // names of the last look-up
  bool look_again_ = false;         // there are other names than those being looked up
  Resolver resolver_;
  net::Timer resolve_timer_;
  net::Timer rebuild_timer_;
};

}  // namespace signalbox::app
