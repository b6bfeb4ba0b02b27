// SPDX-License-Identifier: Apache-2.0
// Reads certificates, keys and CAs; what is wrong stands at the setting that names the file.
#include "app/tls_contexts.h"

#include <algorithm>

namespace signalbox::app {
namespace {

constexpr bool (*kSecure)(const spec::Url&) = [](const spec::Url& url) { return url.tls; };

void towards_clients(const config::Loaded& loaded, TlsContexts& out, spec::Report& report) {
  const spec::Gateway& gateway = loaded.config.gateway;
  if (gateway.tls.cert.empty()) return;
  const auto path = [&](const std::string& file) {
    return file.empty() ? file : config::resolve_path(loaded.folder, file);
  };
  auto at_fault = net::TlsContext::File::Certificate;
  auto made = net::TlsContext::server(path(gateway.tls.cert), path(gateway.tls.key),
                                      path(gateway.tls.client_ca), &at_fault);
  if (made) {
    out.clients = std::move(*made);
    return;
  }
  const char* setting = at_fault == net::TlsContext::File::Certificate ? "cert"
                        : at_fault == net::TlsContext::File::Key       ? "key"
                                                                       : "client_ca";
  report.add("Gateway/" + gateway.name + ".spec.tls." + setting, made.error().message);
}

void towards_engines(const config::Loaded& loaded, TlsContexts& out, spec::Report& report) {
  for (const spec::Pool& pool : loaded.config.pools) {
    const bool secure = std::any_of(pool.endpoints.begin(), pool.endpoints.end(), kSecure);
    if ((!secure && pool.tls.ca.empty()) || out.engines.contains(pool.tls.ca)) continue;
    const std::string ca =
        pool.tls.ca.empty() ? "" : config::resolve_path(loaded.folder, pool.tls.ca);
    auto made = net::TlsContext::client(ca);
    if (made) out.engines.emplace(pool.tls.ca, std::move(*made));
    else report.add("Pool/" + pool.name + ".spec.tls.ca", made.error().message);
  }
}

}  // namespace

Result<LoadedWithTls> load_with_tls(const std::string& path, config::Options options) {
  TlsContexts tls;
  options.inspect = [&tls, more = std::move(options.inspect)](const config::Loaded& loaded,
                                                              spec::Report& report) {
    towards_clients(loaded, tls, report);
    towards_engines(loaded, tls, report);
    if (more) more(loaded, report);
  };
  TRY_ASSIGN(auto loaded, config::load(path, options));
  return LoadedWithTls{std::move(loaded), std::move(tls)};
}

void keep_same(const TlsContexts& present, TlsContexts& next) {
  if (present.clients && next.clients && present.clients->same_as(*next.clients)) {
    next.clients = present.clients;
  }
  for (auto& [ca, context] : next.engines) {
    const auto same = std::find_if(
        present.engines.begin(), present.engines.end(),
        [&](const auto& entry) { return entry.second->same_as(*context); });
    if (same != present.engines.end()) context = same->second;
  }
}

Result<TlsContexts> tls_towards(const std::vector<spec::Url>& urls) {
  TlsContexts tls;
  if (std::any_of(urls.begin(), urls.end(), kSecure)) {
    TRY_ASSIGN(tls.engines[""], net::TlsContext::client(""));
  }
  return tls;
}

}  // namespace signalbox::app
