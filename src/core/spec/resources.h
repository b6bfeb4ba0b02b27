// SPDX-License-Identifier: Apache-2.0
// The kinds that say what is served: Model, Pool, Tenant, Objective, Route. Each is the `spec` of
// one resource; `name` is its metadata.name and no field.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/describe.h"
#include "base/time.h"
#include "core/model/fleet.h"
#include "core/spec/address.h"
#include "core/spec/field.h"

namespace signalbox::spec {

struct Model {
  std::string name;
  std::string public_name;
  std::string profile;
  double params_b = 0;
  double active_params_b = 0;
  std::int64_t context_tokens = 0;
  std::vector<std::string> loras;
  bool operator==(const Model&) const = default;
  // As clients ask for it.
  const std::string& public_or_name() const { return public_name.empty() ? name : public_name; }
};

template <typename V>
void describe(V& v, Model& c) {
  v(c.public_name, "public_name", "Name as clients ask for it; empty: the resource's name.");
  v(c.profile, "profile", "Model of the profile catalogue that it runs like; empty: none known.");
  v(c.params_b, "params_b", "Parameters in billions, all of them; 0: unknown.", Range{0, 1e5});
  v(c.active_params_b, "active_params_b",
    "Parameters in billions used per token; 0: the same as `params_b`.", Range{0, 1e5});
  v(c.context_tokens, "context_tokens",
    "Longest prompt and answer together; 0: as the engines say.", Range{0, 1e9});
  v(c.loras, "loras", "Names of LoRA adapters that clients may ask for.", Range{0, 10'000});
}

enum class OnClientAbort : std::uint8_t { Cancel, Drain };

struct UpstreamTls {
  std::string ca;
  std::string server_name;
  bool operator==(const UpstreamTls&) const = default;
};

template <typename V>
void describe(V& v, UpstreamTls& c) {
  v(c.ca, "ca", "PEM file with the authorities to trust; empty: those of the system.");
  v(c.server_name, "server_name", "Name in the engines' certificates; empty: the URL's host.");
}

struct Pool {
  std::string name;
  Ref<Kind::Model> model;
  std::vector<Url> endpoints;
  model::EngineKind engine = model::EngineKind::Auto;
  std::string served_model;
  std::string accelerator;
  int tensor_parallel = 1;
  std::string precision;
  int ranks = 0;
  model::Role role = model::Role::Both;
  model::DispatchMode dispatch = model::DispatchMode::Immediate;
  double usd_per_hour = 0;
  int concurrency_max = 0;
  double ejected_share_max = 0.5;
  std::vector<Ref<Kind::Tenant>> tenants;
  SecretSource api_key;
  UpstreamTls tls;
  OnClientAbort on_client_abort = OnClientAbort::Cancel;
  Duration scrape_interval = std::chrono::seconds(1);
  bool operator==(const Pool&) const = default;
};

template <typename V>
void describe(V& v, Pool& c) {
  v(c.model, "model", "The Model that its engines serve.", required);
  v(c.endpoints, "endpoints", "URLs of the engines; a name with several addresses is several.",
    {Range{1, 10'000}, required});
  v(c.engine, "engine", "What the engines speak; `auto` finds out.");
  v(c.served_model, "served_model", "Name that the engines know the model by; empty: the Model's.");
  v(c.accelerator, "accelerator", "Accelerator of the catalogue, such as `H100`; empty: unknown.");
  v(c.tensor_parallel, "tensor_parallel", "Accelerators that share one model.", Range{1, 1024});
  v(c.precision, "precision", "Number format of the weights, such as `bf16`; empty: unknown.");
  v(c.ranks, "ranks", "Data-parallel ranks of each engine to place requests on; 0: none pinned.",
    Range{0, 1024});
  v(c.role, "role", "Phase that its engines run.");
  v(c.dispatch, "dispatch",
    "When a request that has a place departs for it: `immediate`: at once; `late`: it stays here, "
    "where it can be moved and overtaken by shorter ones, until the engine is about to run dry "
    "(streamed answers alone tell that); `shuttle`: for engines whose data-parallel ranks begin "
    "their passes together (`ranks`): it stays here until a pass begins, and is seated on the rank "
    "where it makes that pass least longer; `auto`: by shuttle while first tokens show that passes "
    "are shared and holding wins, else at once.");
  v(c.usd_per_hour, "usd_per_hour", "Price of one endpoint; 0: unpriced.", Range{0, 1e6});
  v(c.concurrency_max, "concurrency_max",
    "Requests at once per endpoint; 0: as many as the engine has slots.", Range{0, 1e5});
  v(c.ejected_share_max, "ejected_share_max", "Share of endpoints that failures may take out.",
    Range{0, 1});
  v(c.tenants, "tenants", "Tenants that may use it; empty: all.", Range{0, 10'000});
  v(c.api_key, "api_key", "Key that we show to the engines.");
  v(c.tls, "tls", "TLS towards the engines, for `https` URLs.");
  v(c.on_client_abort, "on_client_abort",
    "When the client leaves: `cancel` the engine's work, or `drain` its answer.");
  v(c.scrape_interval, "scrape_interval", "How often each engine's metrics are read.",
    Range{0.1, 3600});
}

struct Tenant {
  std::string name;
  std::vector<KeySource> keys;
  int concurrency_max = 0;
  bool isolation = true;
  bool operator==(const Tenant&) const = default;
};

template <typename V>
void describe(V& v, Tenant& c) {
  v(c.keys, "keys", "API keys of the tenant; a file may hold one a line.",
    {Range{1, 1000}, required});
  v(c.concurrency_max, "concurrency_max", "Requests at once; 0: unlimited.", Range{0, 1e6});
  v(c.isolation, "isolation", "Share cached prompts with no other tenant.");
}

struct Objective {
  std::string name;
  std::optional<Duration> ttft;
  std::optional<Duration> tpot;
  std::optional<Duration> e2e;
  double latency_weight = 1;
  double seconds_per_usd = 0;
  bool operator==(const Objective&) const = default;
};

template <typename V>
void describe(V& v, Objective& c) {
  v(c.ttft, "ttft", "Time to the first token.", Range{0.001, 86400});
  v(c.tpot, "tpot", "Mean time from token to token after the first.", Range{0.0001, 3600});
  v(c.e2e, "e2e", "Time to the last token.", Range{0.001, 604800});
  v(c.latency_weight, "latency_weight",
    "Weight of a request's own first token: 1 least total time, 4 quicker first tokens.",
    Range{0.1, 64});
  v(c.seconds_per_usd, "seconds_per_usd",
    "Seconds of waiting worth one USD; 0: price is no matter.", Range{0, 1e6});
}

struct Target {
  Ref<Kind::Model> model;
  double weight = 1;
  bool operator==(const Target&) const = default;
};

template <typename V>
void describe(V& v, Target& c) {
  v(c.model, "model", "A Model.", required);
  v(c.weight, "weight", "Share of traffic, relative to the other targets.", Range{0, 1e6});
}

struct Route {
  std::string name;
  std::string public_name;
  std::vector<Target> targets;
  std::vector<Ref<Kind::Model>> fallback;
  Ref<Kind::Objective> objective;
  std::vector<Ref<Kind::Tenant>> tenants;
  Bytes body{0};
  bool operator==(const Route&) const = default;
  // As clients ask for it.
  const std::string& public_or_name() const { return public_name.empty() ? name : public_name; }
};

template <typename V>
void describe(V& v, Route& c) {
  v(c.public_name, "public_name", "Model name that clients ask for; empty: the resource's name.");
  v(c.targets, "targets", "Models that serve it, with weights.", {Range{1, 100}, required});
  v(c.fallback, "fallback",
    "Models tried in order when no target can serve: all its endpoints are down, keep failing or "
    "have failed this very request, or its queue is full. A request that `answers_max` engines "
    "have answered with errors ends with the last of them and goes nowhere else.",
    Range{0, 100});
  v(c.objective, "objective", "The Objective of its requests; empty: none.");
  v(c.tenants, "tenants", "Tenants that may ask for it; empty: all.", Range{0, 10'000});
  v(c.body, "body", "A request body; 0: the gateway's limit.", Range{0, 1 << 30});
}

}  // namespace signalbox::spec

template <>
struct signalbox::EnumNames<signalbox::model::EngineKind> {
  using E = model::EngineKind;
  static constexpr std::pair<E, std::string_view> values[] = {
      {E::Auto, "auto"},         {E::Vllm, "vllm"},     {E::Sglang, "sglang"},
      {E::LlamaCpp, "llamacpp"}, {E::TrtLlm, "trtllm"}, {E::OpenAi, "openai"}};
};

template <>
struct signalbox::EnumNames<signalbox::model::Role> {
  using E = model::Role;
  static constexpr std::pair<E, std::string_view> values[] = {
      {E::Both, "both"}, {E::Prefill, "prefill"}, {E::Decode, "decode"}};
};

template <>
struct signalbox::EnumNames<signalbox::model::DispatchMode> {
  using E = model::DispatchMode;
  static constexpr std::pair<E, std::string_view> values[] = {
      {E::Immediate, "immediate"}, {E::Late, "late"}, {E::Shuttle, "shuttle"},
      {E::Auto, "auto"}};
};

template <>
struct signalbox::EnumNames<signalbox::spec::OnClientAbort> {
  using E = spec::OnClientAbort;
  static constexpr std::pair<E, std::string_view> values[] = {{E::Cancel, "cancel"},
                                                              {E::Drain, "drain"}};
};
