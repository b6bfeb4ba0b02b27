// SPDX-License-Identifier: Apache-2.0
// A whole configuration as values, read from trees and written back. Every list is ordered by name,
// so that the order of files and documents has no meaning. Holds no secrets, only where they are.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/rng.h"
#include "core/spec/gateway.h"
#include "core/spec/problem.h"
#include "core/spec/resources.h"
#include "core/spec/tree.h"

namespace signalbox::spec {

inline constexpr std::string_view kApiVersion = "signalbox.dev/v1alpha1";

struct Config {
  Gateway gateway;  // defaults when no Gateway is written
  std::vector<Model> models;
  std::vector<Pool> pools;
  std::vector<Tenant> tenants;
  std::vector<Objective> objectives;
  std::vector<Route> routes;
  bool operator==(const Config&) const = default;
};

// The resource of that name; null: there is none.
template <typename Resource>
const Resource* find(const std::vector<Resource>& list, std::string_view name) {
  for (const Resource& resource : list) {
    if (resource.name == name) return &resource;
  }
  return nullptr;
}

// Reads all documents; adds every problem found to the report and the place of every path. The
// configuration may be used when the report stays clean.
Config parse(const std::vector<Document>& documents, Report& report);
// The same, all or nothing: the error lists every problem, one a line.
Result<Config> parse(const std::vector<Document>& documents);

// Rules between fields and between resources: references, names that must differ, weights, TLS
// pairs, listening without authentication. Part of parse(); for configurations made in code.
void check(const Config& config, Report& report);

// Whether it listens beyond this machine although nothing says who may ask, neither tenants nor
// client certificates, and nobody wrote `insecure`.
bool serves_strangers(const Config& config);

// What is valid and yet hardly meant, a line each: names that the profile catalogue does not know,
// so that predictions start from a guess; pools that serve nobody.
std::vector<std::string> doubts(const Config& config);

// Every setting, defaults as well, one document per resource; parse() gives the same Config back.
std::vector<Document> to_documents(const Config& config);
std::string to_yaml(const Config& config);

// What changed, a line each, for people: `Pool/llama.spec.endpoints: added http://10.0.0.9:8000`.
// Empty: nothing.
std::vector<std::string> diff(const Config& before, const Config& after);

// Undoes in `next` what only a start can change (AtStart): there it gets the values of `running`.
// Returns the paths of what differed, such as `Gateway.listen`.
std::vector<std::string> keep_until_start(Gateway& next, const Gateway& running);

// Any valid configuration: each setting at its default, at a border or within its range.
Config random(Rng& rng);

}  // namespace signalbox::spec
