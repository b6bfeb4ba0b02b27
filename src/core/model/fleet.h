// SPDX-License-Identifier: Apache-2.0
// The fleet as declared: models, pools, endpoints, tenants, objectives, routes. Values only; made
// by core/spec from the configuration and the resolved addresses, replaced whole on every change.
// Vectors are ordered by id.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "core/model/ids.h"

namespace signalbox::model {

enum class EngineKind : std::uint8_t { Auto, Vllm, Sglang, LlamaCpp, TrtLlm, OpenAi };
enum class Role : std::uint8_t { Both, Prefill, Decode };
// When a request that has a place departs for it.
enum class DispatchMode : std::uint8_t {
  Immediate,  // at once
  Late,       // just before the engine would run dry
  Shuttle,    // with others, when a pass over the engine's ranks begins
  Auto,       // by shuttle where passes are seen to be gated and holding wins, else at once
};

std::string_view name(EngineKind kind);
std::string_view name(DispatchMode mode);

struct Model {
  ModelId id;
  std::string name;                // canonical name, as clients see it
  std::string profile;             // catalogue name such as `Llama-3.1-70B`; empty: none known
  double params_b = 0;             // parameters in billions, all; 0: unknown
  double active_params_b = 0;      // per token; 0: same as params_b
  std::int64_t context_tokens = 0; // 0: unknown
  std::vector<std::string> loras;  // adapter names that may be asked for
};

struct Pool {
  PoolId id;
  std::string name;
  ModelId model;
  std::string served_model;         // the name the engines know it by; empty: the model's name
  EngineKind engine = EngineKind::Auto;
  Role role = Role::Both;
  DispatchMode dispatch = DispatchMode::Immediate;
  std::string accelerator;          // a name of the accelerator catalogue; empty: unknown
  int tensor_parallel = 1;
  std::string precision;            // bf16, fp8, ...; empty: unknown
  double usd_per_hour = 0;          // price of one endpoint; 0: unpriced
  int concurrency_max = 0;          // requests at once per endpoint; 0: slots or profile, else 64
  double ejected_share_max = 0.5;   // of the pool's endpoints that ejection may take out, 0..1
  std::vector<TenantId> tenants;    // who may use it; empty: everybody
};

struct Endpoint {
  EndpointId id;
  PoolId pool;
  std::string address;  // host:port, host a numeric address
  int rank = -1;        // data-parallel rank to pin; -1: none
  bool tls = false;
  bool serves = true;                // false: its own list of models says that it does not
  bool lists_loras = false;          // it told which adapters it has; else it has its Model's
  std::vector<std::string> loras{};
};

struct Tenant {
  TenantId id;
  std::string name;
  int concurrency_max = 0;  // requests in flight at once; 0: unlimited
};

struct Objective {
  ObjectiveId id;
  std::string name;
  Duration ttft = kNever - Instant{};    // Duration::max(): no objective
  Duration tpot = kNever - Instant{};
  Duration e2e = kNever - Instant{};
  double latency_weight = 1;             // w of the routing score, 0.1..64
  double seconds_per_usd = 0;            // lambda of the routing score
};

struct Target {
  ModelId model;
  double weight = 1;  // share of traffic, relative to the other targets
};

struct Route {
  RouteId id;
  std::string name;                // the public model name
  std::vector<Target> targets;     // at least one
  std::vector<ModelId> fallback;   // tried in order when no target has a place
  ObjectiveId objective;
  std::vector<TenantId> tenants;   // who may ask for it; empty: everybody
};

struct Fleet {
  std::vector<Model> models;
  std::vector<Pool> pools;
  std::vector<Endpoint> endpoints;
  std::vector<Tenant> tenants;
  std::vector<Objective> objectives;
  std::vector<Route> routes;
};

}  // namespace signalbox::model
