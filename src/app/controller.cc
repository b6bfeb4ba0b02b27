// SPDX-License-Identifier: Apache-2.0
// Configuration and discovery in, fleet out.
#include "app/controller.h"

#include <algorithm>
#include <optional>
#include <set>

#include "app/compose.h"
#include "app/table.h"
#include "base/check.h"
#include "core/flow/config_of.h"
#include "core/flow/flow.h"
#include "io/telemetry/log.h"

namespace signalbox::app {
namespace {

using telemetry::log_info;
using telemetry::log_warn;

// What cannot be told apart yet is spoken to in the common dialect.
model::EngineKind kind_of(model::EngineKind declared, const engine::Discovery* found) {
  if (declared != model::EngineKind::Auto) return declared;
  return found != nullptr ? found->kind : model::EngineKind::OpenAi;
}

std::uint64_t hash_domain(const std::string& name) {
  const config::Sha256 hash = config::sha256("signalbox isolation domain " + name);
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < 8; ++i) value = value << 8 | hash[i];
  return value | 1;
}

std::string hex_salt(std::uint64_t domain) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (int shift = 60; shift >= 0; shift -= 4) text += kDigits[(domain >> shift) & 15];
  return text;
}

const std::string& server_name(const spec::Pool& pool, const spec::Url& url) {
  return pool.tls.server_name.empty() ? url.host : pool.tls.server_name;
}

// The name of the model in requests to the pool's engines.
const std::string& served_name(const spec::Pool& pool, const spec::Model& model) {
  return pool.served_model.empty() ? model.public_or_name() : pool.served_model;
}

// The first of them, for a line of the log.
std::string some_of(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 12;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kShown); ++i) {
    if (i > 0) text += ", ";
    text += names[i];
  }
  if (names.size() > kShown) text += " and " + std::to_string(names.size() - kShown) + " more";
  return text;
}

std::string some_of(const std::vector<engine::ModelInfo>& models) {
  std::vector<std::string> names;
  for (const engine::ModelInfo& model : models) names.push_back(model.id);
  return some_of(names);
}

void copy_limits(gateway::Published& p, const spec::Gateway& g) {
  p.http_limits.head_bytes_max = g.limits.header_block;
  p.http_limits.fields_max = g.limits.header_fields;
  p.http_limits.line_bytes_max = g.limits.header_line;
  p.http_limits.body_bytes_max = g.limits.body;
  p.http_limits.sse_tail_bytes_max = g.limits.event;
  p.body_max = static_cast<std::uint64_t>(g.limits.body.value);
  p.bodies_max = g.limits.bodies.value;
  p.client_buffer = static_cast<std::size_t>(g.limits.client_buffer.value);
  p.answer_held = static_cast<std::size_t>(g.limits.answer_held.value);
  p.answer_assembled = static_cast<std::size_t>(g.limits.answer_assembled.value);
  p.scan_limits.depth_max = g.limits.json_depth;
  p.scan_limits.schema_depth_max = g.limits.schema_depth;
  p.scan_limits.messages_max = g.limits.messages;
  p.scan_limits.inputs_max = g.limits.inputs;
  p.scan_limits.tools_max = g.limits.tools;
  p.scan_limits.n_max = g.limits.n;
  p.scan_limits.best_of_max = g.limits.best_of;
  p.scan_limits.logprobs_max = g.limits.logprobs;
  p.scan_limits.top_logprobs_max = g.limits.top_logprobs;
  p.scan_limits.stop_max = g.limits.stop_sequences;
  p.scan_limits.stop_bytes_max = static_cast<int>(g.limits.stop_length.value);
  p.scan_limits.logit_bias_max = g.limits.logit_bias;
  p.scan_limits.output_tokens_max = g.limits.max_tokens;
  p.timeouts = g.timeouts;
  p.decision_headers = g.decision_headers;
}

// Whom a route can serve, ascending: those that it is open to and that have a pool behind it.
// Empty: everybody. Nothing: nobody. A route whose models have no pool yet is open to whom it says.
std::optional<std::vector<model::TenantId>> who_may_ask(const model::Fleet& fleet,
                                                        const model::Route& route) {
  std::set<model::TenantId> served;
  bool closed = false;
  for (const model::Pool& pool : fleet.pools) {
    const auto is = [&](model::ModelId id) { return id == pool.model; };
    const bool behind =
        std::any_of(route.targets.begin(), route.targets.end(),
                    [&](const model::Target& target) { return is(target.model); }) ||
        std::any_of(route.fallback.begin(), route.fallback.end(), is);
    if (!behind) continue;
    if (pool.tenants.empty()) return route.tenants;
    closed = true;
    served.insert(pool.tenants.begin(), pool.tenants.end());
  }
  if (!closed) return route.tenants;
  if (!route.tenants.empty()) {
    std::erase_if(served, [&](model::TenantId tenant) {
      return std::find(route.tenants.begin(), route.tenants.end(), tenant) == route.tenants.end();
    });
  }
  if (served.empty()) return std::nullopt;
  return std::vector<model::TenantId>(served.begin(), served.end());
}

}  // namespace

Controller::Controller(net::Loop& loop, host::CoreHost& host, Publisher publisher,
                       std::uint64_t seed, Resolver::Lookup lookup)
    : loop_(loop), host_(host), publisher_(std::move(publisher)),
      observer_(loop, {}, Rng(seed, "observe"),
                {[this](model::Event event) {
                   batch_.push_back(std::move(event));
                   host_.hand_in_foreign(batch_);
                 },
                 [this](const observe::Found& found) { on_found(found); },
                 [](std::string_view name, const Error& error) {
                   log_warn("an engine does not answer",
                            {{"engine", name}, {"why", error.message}});
                 },
                 nullptr}),
      resolver_(loop, [this](spec::Resolved resolved) { on_resolved(std::move(resolved)); },
                std::move(lookup)),
      resolve_timer_([this] { resolve_names(); }), rebuild_timer_([this] { rebuild(); }) {}

Controller::~Controller() = default;

void Controller::use(config::Loaded loaded, TlsContexts tls) {
  loaded_ = std::move(loaded);
  tls_ = std::move(tls);
  for (const std::string& doubt : spec::doubts(loaded_.config)) log_warn(doubt);
  addresses_.clear();
  looked_up_ = false;
  rebuild();
  resolve_names();
}

void Controller::use_addresses(config::Loaded base, TlsContexts tls,
                               std::vector<spec::Url> urls) {
  loaded_ = std::move(base);
  tls_ = std::move(tls);
  addresses_ = std::move(urls);
  looked_up_ = false;
  rebuild();
  resolve_names();
}

void Controller::reload(config::Loaded next, TlsContexts tls) {
  const std::vector<std::string> changes = config::diff(loaded_, next);
  log_info("configuration reloaded", {{"changes", changes.size()}});
  for (const std::string& change : changes) log_info(change);
  use(std::move(next), std::move(tls));
}

void Controller::rebuild() {
  if (!addresses_.empty()) compose(loaded_.config, addresses_, found_);
  compiled_ = spec::compile(loaded_.config, directory_, resolved_);
  take_lists();
  tell_notes();
  publish();
  watch();
}

// An engine that lists its models and adapters has no others. A plain OpenAI server that somebody
// declared may list none that it has; then the declaration counts.
void Controller::take_lists() {
  for (std::size_t i = 0; i < compiled_.fleet.endpoints.size(); ++i) {
    const spec::EndpointOrigin& origin = compiled_.origins[i];
    const auto found = found_.find(spec::host_port(origin.url));
    if (found == found_.end() || found->second.facts.models.empty()) continue;
    const model::EngineKind kind = found->second.kind;
    const bool lists = kind == model::EngineKind::Vllm || kind == model::EngineKind::Sglang;
    if (!lists && addresses_.empty()) continue;
    model::Endpoint& endpoint = compiled_.fleet.endpoints[i];
    const std::vector<engine::ModelInfo>& listed = found->second.facts.models;
    const spec::Pool& pool = *spec::find(loaded_.config.pools, origin.pool);
    const spec::Model& model = *spec::find(loaded_.config.models, pool.model.name);
    const std::string& served = served_name(pool, model);
    endpoint.serves = std::any_of(listed.begin(), listed.end(),
                                  [&](const engine::ModelInfo& info) { return info.id == served; });
    if (!endpoint.serves) {
      compiled_.notes.push_back("The engine " + found->first + " of pool '" + pool.name +
                                "' serves " + some_of(listed) + " and not '" + served +
                                "': it gets no requests. Name what it serves in "
                                "Pool.served_model, or start it with that name.");
    }
    endpoint.lists_loras = true;
    for (const engine::ModelInfo& info : listed) {
      const bool asked_for = std::find(model.loras.begin(), model.loras.end(), info.id) !=
                             model.loras.end();
      if (asked_for) endpoint.loras.push_back(info.id);
    }
  }
}

void Controller::resolve_names() {
  std::vector<std::string> names = spec::unresolved(loaded_.config);
  for (const spec::Url& url : addresses_) {
    if (!net::Address::parse(spec::host_port(url))) names.push_back(spec::host_port(url));
  }
  loop_.arm_after(resolve_timer_, loaded_.config.gateway.observe.resolve_interval);
  if (names.empty()) {
    look_again_ = false;
    looked_up_ = true;
    return tell_notes();
  }
  const bool others = names != asked_;
  const bool begun = resolver_.start(names);
  if (begun) asked_ = std::move(names);
  look_again_ = !begun && others;
}

// Once each, and again when it was gone between. What no look-up has been done for is no news.
void Controller::tell_notes() {
  if (!looked_up_) return;
  std::set<std::string> notes(compiled_.notes.begin(), compiled_.notes.end());
  for (const spec::Url& url : addresses_) {
    const std::string name = spec::host_port(url);
    if (net::Address::parse(name) || resolved_.contains(name)) continue;
    const double again = to_seconds(loaded_.config.gateway.observe.resolve_interval);
    notes.insert("The name " + name + " cannot be resolved; it is tried again every " +
                 fixed(again, 0) + " s. Check the spelling and the DNS.");
  }
  for (const std::string& note : notes) {
    if (!told_.contains(note)) log_warn(note);
  }
  told_ = std::move(notes);
}

void Controller::on_resolved(spec::Resolved resolved) {
  // A name that cannot be resolved just now keeps its last addresses.
  for (auto& [name, addresses] : resolved_) {
    if (!resolved.try_emplace(name, addresses).second) {
      lost_names_.erase(name);
    } else if (std::ranges::find(asked_, name) != asked_.end() && lost_names_.insert(name).second) {
      log_warn("a name cannot be resolved just now and keeps its addresses", {{"name", name}});
    }
  }
  for (const auto& [name, addresses] : resolved) {
    const auto before = resolved_.find(name);
    if (before == resolved_.end() || before->second == addresses) continue;
    log_info("a name has other addresses", {{"name", name}, {"addresses", some_of(addresses)},
                                            {"before", some_of(before->second)}});
  }
  const bool news = resolved != resolved_;
  resolved_ = std::move(resolved);
  looked_up_ = !look_again_;
  if (news) rebuild();
  else tell_notes();
  if (look_again_) resolve_names();
}

void Controller::on_found(const observe::Found& found) {
  const auto known = found_.find(found.name);
  if (known != found_.end() && known->second == found.discovery) return;
  const engine::Discovery& d = found.discovery;
  const std::string models = some_of(d.facts.models);
  log_info("engine found", {{"engine", found.name}, {"kind", name(d.kind)}, {"models", models},
                            {"slots", d.facts.slots}, {"ready", d.ready}});
  if (!d.note.empty()) log_warn(d.note, {{"engine", found.name}});
  found_[found.name] = d;
  // A thousand engines are found in one second: one rebuild for many of them.
  if (!rebuild_timer_.armed()) loop_.arm_after(rebuild_timer_, std::chrono::milliseconds(20));
}

std::shared_ptr<net::TlsContext> Controller::tls_for(const spec::Pool& pool) const {
  const auto made = tls_.engines.find(pool.tls.ca);
  CHECK(made != tls_.engines.end());  // plain text would give the engine's key away
  return made->second;
}

gateway::EndpointAccess Controller::access(const model::Endpoint& endpoint,
                                           const spec::EndpointOrigin& origin) {
  const spec::Pool& pool = *spec::find(loaded_.config.pools, origin.pool);
  const std::string name = spec::host_port(origin.url);
  const auto found = found_.find(name);
  gateway::EndpointAccess access;
  access.id = endpoint.id;
  access.kind = kind_of(pool.engine, found == found_.end() ? nullptr : &found->second);
  access.habits = &engine::habits(access.kind);
  access.address = *net::Address::parse(endpoint.address);
  access.label = endpoint.address;
  if (endpoint.rank >= 0) {
    access.label += "/" + std::to_string(endpoint.rank);
    access.rank = std::to_string(endpoint.rank);
  }
  access.host_field = name;
  if (origin.url.tls) {
    access.tls = tls_for(pool);
    access.server_name = server_name(pool, origin.url);
  }
  const spec::Model& model = *spec::find(loaded_.config.models, pool.model.name);
  access.served_model = served_name(pool, model);
  const auto key = loaded_.secrets.upstream.find(pool.name);
  if (key != loaded_.secrets.upstream.end() && !key->second.empty()) {
    access.authorization = "Bearer " + std::string(key->second.reveal());
  }
  access.drain_on_abort = pool.on_client_abort == spec::OnClientAbort::Drain;
  return access;
}

void Controller::add_names(gateway::Published& published) const {
  const spec::Config& config = loaded_.config;
  const model::Fleet& fleet = *published.fleet;
  for (const model::Route& route : fleet.routes) {
    gateway::NameAccess access;
    access.route = route.id;
    const auto tenants = who_may_ask(fleet, route);
    if (!tenants) continue;
    access.tenants = *tenants;
    access.owner = "signalbox";
    access.body_max = static_cast<std::uint64_t>(config.gateway.limits.body.value);
    for (const spec::Route& declared : config.routes) {
      if (declared.public_or_name() != route.name || declared.body.value == 0) continue;
      access.body_max = static_cast<std::uint64_t>(declared.body.value);
    }
    published.body_max = std::max(published.body_max, access.body_max);
    for (const model::Target& target : route.targets) {
      for (const model::Model& m : fleet.models) {
        if (m.id == target.model) access.context_tokens = m.context_tokens;
      }
    }
    published.names[route.name] = access;
  }
  // An adapter goes by its own name, along the route of its base model.
  for (const spec::Model& model : config.models) {
    const auto base = published.names.find(model.public_or_name());
    if (base == published.names.end()) continue;
    for (const std::string& lora : model.loras) {
      gateway::NameAccess access = base->second;
      access.lora = flow::lora_hash(lora);
      access.lora_name = true;
      published.names.try_emplace(lora, access);
    }
  }
}

void Controller::add_tenants(gateway::Published& published) const {
  for (const auto& [hash, name] : loaded_.secrets.tenants) {
    const spec::Tenant* declared = spec::find(loaded_.config.tenants, name);
    gateway::TenantAccess access;
    access.name = name;
    for (const model::Tenant& tenant : published.fleet->tenants) {
      if (tenant.name == name) access.id = tenant.id;
    }
    if (declared != nullptr && declared->isolation) {
      access.domain = hash_domain(name);
      access.salt = hex_salt(access.domain);
    }
    published.tenants[hash] = access;
  }
}

void Controller::publish() {
  auto published = std::make_shared<gateway::Published>();
  published->config = loaded_.config;
  published->fleet = std::make_shared<const model::Fleet>(compiled_.fleet);
  copy_limits(*published, loaded_.config.gateway);
  for (std::size_t i = 0; i < compiled_.fleet.endpoints.size(); ++i) {
    published->endpoints.push_back(access(compiled_.fleet.endpoints[i], compiled_.origins[i]));
  }
  std::sort(published->endpoints.begin(), published->endpoints.end(),
            [](const auto& a, const auto& b) { return a.id < b.id; });
  add_names(*published);
  add_tenants(*published);
  published_ = published;
  // The workers first: the core may name a new endpoint as soon as it knows it.
  publisher_(published_);
  host_.apply({flow::config_of(loaded_.config.gateway), published_->fleet});
}

void Controller::watch() {
  std::map<std::string, observe::Target> targets;  // by address
  const auto target_at = [&](const spec::Url& url,
                             const std::string& address) -> observe::Target* {
    const auto parsed = net::Address::parse(address);
    if (!parsed) return nullptr;
    observe::Target& target = targets[address];
    if (target.name.empty()) {
      target.name = spec::host_port(url);
      target.address = *parsed;
      target.answer_within = loaded_.config.gateway.observe.scrape_timeout;
    }
    return &target;
  };
  for (std::size_t i = 0; i < compiled_.fleet.endpoints.size(); ++i) {
    const model::Endpoint& endpoint = compiled_.fleet.endpoints[i];
    const spec::EndpointOrigin& origin = compiled_.origins[i];
    const spec::Pool& pool = *spec::find(loaded_.config.pools, origin.pool);
    observe::Target* target = target_at(origin.url, endpoint.address);
    if (target == nullptr) continue;
    // A discovered pool stays open to discovery: the engine behind an address may change.
    target->declared = addresses_.empty() ? pool.engine : model::EngineKind::Auto;
    target->members.push_back({endpoint.id, endpoint.rank});
    // Pools that share an engine see it as often as the most curious of them wants.
    if (target->interval == Duration::zero() || pool.scrape_interval < target->interval) {
      target->interval = pool.scrape_interval;
    }
    if (origin.url.tls) {
      target->tls = tls_for(pool);
      target->server_name = server_name(pool, origin.url);
    }
    const auto key = loaded_.secrets.upstream.find(pool.name);
    if (key != loaded_.secrets.upstream.end()) target->key = key->second.reveal();
  }
  for (const spec::Url& url : addresses_) {
    const std::string name = spec::host_port(url);
    const auto resolved = resolved_.find(name);
    if (resolved == resolved_.end()) {
      target_at(url, name);
      continue;
    }
    for (const std::string& address : resolved->second) target_at(url, address);
  }
  std::vector<observe::Target> list;
  for (auto& [address, target] : targets) list.push_back(std::move(target));
  observer_.set_targets(std::move(list));
}

bool Controller::ready() const { return published_ && !published_->endpoints.empty(); }

}  // namespace signalbox::app
