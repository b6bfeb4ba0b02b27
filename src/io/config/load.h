// SPDX-License-Identifier: Apache-2.0
// Loads a configuration from a file or a directory, with the secrets that it points to. All or
// nothing; blocking file reads, so never on an I/O loop's thread while it serves.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "core/spec/config.h"
#include "core/spec/problem.h"
#include "io/config/secret.h"
#include "io/config/yaml.h"

namespace signalbox::config {

struct Loaded;

struct Options {
  YamlLimits yaml;
  std::size_t files_max = 1000;          // of a directory
  std::size_t secret_bytes_max = 1 << 20;  // of one key or PEM file
  bool secrets = true;                   // false: they are not read, and need not be there
  // Value of an environment variable; the process's own when empty.
  std::function<std::optional<std::string>(const std::string&)> environment;
  // Looks at what was read, and at the files behind it, with the eyes of those who will use it;
  // what it finds wrong stands in the error with its place. Not called without `secrets`.
  std::function<void(const Loaded&, spec::Report&)> inspect;
};

// What the configuration points to, resolved. Keys are hashes: their plain text is gone.
struct Secrets {
  std::map<Sha256, std::string> tenants;       // hash of a key -> name of its tenant
  std::map<std::string, Secret> upstream;      // name of a pool -> key to show to its engines
  std::optional<Sha256> admin;                 // hash of the admin token; none: no token needed
};

struct Loaded {
  spec::Config config;
  Secrets secrets;
  std::string folder;              // relative paths in the configuration start here
  std::vector<std::string> files;  // read for it, secrets and certificates as well; to be watched
};

// A file, or a directory whose *.yaml and *.yml are read in the order of their names (not those of
// its folders, nor hidden ones). The error lists every problem, one a line.
Result<Loaded> load(const std::string& path, const Options& options = {});

// The same from text, as if it stood in `file` inside `folder`.
Result<Loaded> load_text(const std::string& file, const std::string& text,
                         const std::string& folder = ".", const Options& options = {});

// What a reload changes, a line each, for the log: settings, and secrets that differ without any
// setting saying so. Secrets themselves are not shown.
std::vector<std::string> diff(const Loaded& before, const Loaded& after);

// `path` as the configuration means it: absolute, or relative to `folder`.
std::string resolve_path(const std::string& folder, const std::string& path);

}  // namespace signalbox::config
