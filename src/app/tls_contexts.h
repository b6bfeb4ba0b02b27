// SPDX-License-Identifier: Apache-2.0
// The TLS contexts of a configuration. Made while it is loaded, so that files that cannot be used
// refuse the whole of it, and what was checked is what serves.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "io/config/load.h"
#include "io/net/tls.h"

namespace signalbox::app {

struct TlsContexts {
  std::shared_ptr<net::TlsContext> clients;  // null: clients come without TLS
  // By Pool.tls.ca as it is written; the empty one trusts what the system trusts. Has one for each
  // pool with an https:// endpoint.
  std::map<std::string, std::shared_ptr<net::TlsContext>> engines;
};

struct LoadedWithTls {
  config::Loaded loaded;
  TlsContexts tls;
};

// config::load(), and the contexts. Without secrets there are none.
Result<LoadedWithTls> load_with_tls(const std::string& path, config::Options options = {});

// Puts contexts of `present` in the place of those of `next` that are the same: connections and
// sessions made with them live on.
void keep_same(const TlsContexts& present, TlsContexts& next);

// For engines at addresses alone.
Result<TlsContexts> tls_towards(const std::vector<spec::Url>& urls);

}  // namespace signalbox::app
